"""Opens an experiment's corpora, checks them against each other and the config, batches them."""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from transept.checkpoint import TARGET_TOKENIZER, TOKENIZER
from transept.data.batching.feed import Feed
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Position
from transept.data.shards import Corpus
from transept.errors import ConfigError, Problem, VocabularyError
from transept.experiment import Experiment
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.batches import Batch, Loader, MicroBatch, to_batch, to_micro_batches
from transept.training.trainer import Validation, validate
from transept.training.update import Update, rehearse


@dataclass(frozen=True, slots=True)
class Corpora:
    """The opened corpora of an experiment."""

    train: Mixture
    dev: Corpus | None
    tokenizers: dict[str, Path]
    """The directories a bundle copies: `tokenizer`, and `target_tokenizer` if it differs."""
    vocab_sizes: dict[str, int]
    """The vocabulary sizes of `source` and `target`."""
    hashes: dict[str, str]
    """The hash of every corpus, by directory."""

    @classmethod
    def open(cls, experiment: Experiment, verify: bool = True) -> "Corpora":
        """Open the corpora and check that they fit together.

        With `verify`, check the checksum of every file.
        """
        entries = experiment.data.train
        if not entries:
            what = "is empty: name a corpus that `transept data prepare` wrote"
            raise ConfigError([Problem("data.train", what)])
        # Verifying takes seconds even for the largest corpora, and training reads the files anyway.
        corpora = [Corpus.open(entry.path, verify=verify) for entry in entries]
        named = experiment.data.dev
        dev = None if named is None else Corpus.open(named, verify=verify)
        first, every = corpora[0], [*corpora, *([dev] if dev else [])]
        for corpus in every:
            _check_vocabularies(corpus, first)
        tokenizers = {TOKENIZER: first.source_tokenizer}
        if first.target_tokenizer != first.source_tokenizer:
            tokenizers[TARGET_TOKENIZER] = first.target_tokenizer
        mixture = Mixture(corpora, [entry.weight for entry in entries])
        sizes = {side: first.manifest.side(side).vocab_size for side in ("source", "target")}
        hashes = {str(corpus.directory): corpus.hash for corpus in every}
        return cls(mixture, dev, tokenizers, sizes, hashes)

    def fit(self, experiment: Experiment) -> Experiment:
        """Return the experiment with these vocabulary sizes filled in.

        Sizes that the experiment sets itself must agree with the corpora.
        """
        model = experiment.model.with_vocabularies(**self.vocab_sizes)
        named = {"target": model.vocab_size, "source": model.source_vocab_size or model.vocab_size}
        for side, size in named.items():
            there = self.vocab_sizes[side]
            if there != size:
                key = "model.vocab_size" if side == "target" else "model.source_vocab_size"
                where = experiment.data.train[0].path
                what = f"is {size}, but {where} has {there}; set {key}={there}"
                raise ConfigError([Problem(key, what)])
        return dataclasses.replace(experiment, model=model)


def _check_vocabularies(corpus: Corpus, first: Corpus) -> None:
    ours, theirs = corpus.manifest.settings, first.manifest.settings
    sides = ("source_tokenizer", "target_tokenizer")
    if any(getattr(ours, side) != getattr(theirs, side) for side in sides):
        raise VocabularyError(
            f"{corpus.directory} and {first.directory} were prepared with different tokenizers; "
            "use the same tokenizer for both"
        )


# --- batches -----------------------------------------------------------------------------------


def training_data(
    experiment: Experiment, corpora: Corpora, runtime: Runtime, start: Position
) -> Iterator[Batch]:
    """Yield the global batches of training endlessly, from the position `start` on."""
    feed = Feed(
        mixture=corpora.train,
        config=experiment.batch,
        seed=experiment.training.seed,
        start=start,
        rank=runtime.world.rank,
        world_size=runtime.world.size,
    )
    with Loader(feed, workers=experiment.data.workers) as loader:
        for header, block in loader:
            yield to_batch(header, block, experiment.model, runtime)


def validation(
    experiment: Experiment, corpora: Corpora, update: Update
) -> Callable[[], Validation] | None:
    """Return a function that validates on the development set, or None if there is none."""
    if corpora.dev is None:
        return None
    dev = Mixture([corpora.dev])
    # The development set includes long sentences, even those that training leaves out.
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
    """Run a batch without padding first, so that running out of memory loses no work."""
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
