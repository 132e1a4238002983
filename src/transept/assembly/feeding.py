"""Corpora become batches on the device: those of training, of validation, of the rehearsal."""

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice

import torch

from transept.assembly.corpora import Corpora
from transept.data.batching.feed import Feed
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Position
from transept.experiment import Experiment
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.batches import Batch, Loader, MicroBatch, read_batches, to_micro_batches
from transept.training.trainer import Validation, validate
from transept.training.update import Update, rehearse


def training_data(
    experiment: Experiment, corpora: Corpora, runtime: Runtime, start: Position
) -> Iterator[Batch]:
    """The global batches of training from a place in the data on, without end."""
    feed = Feed(
        mixture=corpora.train,
        config=experiment.batch,
        seed=experiment.training.seed,
        start=start,
        rank=runtime.world.rank,
        world_size=runtime.world.size,
    )
    return read_batches(feed, experiment.data.workers, experiment.model, runtime)


def validation(
    experiment: Experiment, corpora: Corpora, update: Update
) -> Callable[[], Validation] | None:
    """What looks at the development set, where there is one."""
    if corpora.dev is None:
        return None
    dev = Mixture([corpora.dev])
    # Long sentences count on the development set too, whatever training leaves out.
    longest = max(int(dev.source_lengths.max()), int(dev.target_lengths.max()))
    batch = dataclasses.replace(
        experiment.batch,
        layout="by_length",
        micro_batches=1,
        max_length=longest,
        source_tokens=max(longest, experiment.batch.source_tokens),
        target_tokens=max(longest, experiment.batch.target_tokens),
    )
    feed = Feed(mixture=dev, config=batch, seed=0, epochs=1)

    world = update.runtime.world

    def batches() -> Iterator[tuple[MicroBatch, int]]:
        with Loader(feed) as loader:
            for header, block in islice(loader, world.rank, None, world.size):
                (micro_batch,) = to_micro_batches(header, block, update.runtime)
                yield micro_batch, header.n_target_tokens

    return lambda: validate(update, batches())


def rehearse_largest(update: Update, experiment: Experiment) -> None:
    """Try a batch whose every place is taken, before there is anything to lose."""
    batch, device = experiment.batch, update.runtime.device
    side = min(batch.source_tokens, batch.target_tokens) // batch.micro_batches
    tile = min(batch.tile * batch.row_tiles, side)

    model = experiment.model
    in_both = min(model.vocab_size, model.source_vocab_size or model.vocab_size) - 1

    def full(divisor: int) -> MicroBatch:
        rows = max(1, side // divisor // tile)
        ids = torch.full((rows, tile), in_both, device=device)
        tokens = Tokens.padded(ids, experiment.model.pad_id)
        return MicroBatch(tokens, tokens)

    rehearse(update, full(1), smaller=full, divisors=(2, 4, 8, 16, 32, 64, 128))
