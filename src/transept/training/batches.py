"""What a step learns from: batches in the plan's order, read ahead, as the network reads them.

Worker processes share nothing. Each makes the plan for itself, which is cheap, and reads every
n-th batch. So the batches and their order are the same for any number of workers.
"""

import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray

from transept.data.batching.feed import Feed, Header, ShareReader
from transept.errors import ConfigError
from transept.model.config import ModelConfig
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.runtime.workers import Workers
from transept.shapes import Int, Tensor

Loaded = tuple[Header, Int[Tensor, " _"]]
"""A header, and its block: one piece of memory, so that one copy moves the batch to a device."""


class Loader(Iterator[Loaded]):
    """The batches of a feed. Use it in a `with` block, or close it: it may own processes."""

    def __init__(self, feed: Feed, workers: int = 0, prefetch: int = 16) -> None:
        """Start reading.

        Args:
            feed: What to read.
            workers: Processes that read ahead; with 0, each batch is read when it is asked for.
            prefetch: Batches kept ready where there are workers. They bridge the moment in which
                every worker plans the next window.
        """
        if workers < 0 or prefetch < 1:
            raise ConfigError(f"a loader cannot have {workers} workers and prefetch {prefetch}")
        self._stack = ExitStack()
        self._batches: Iterator[Loaded | None] = map(_loaded, feed.blocks())
        if workers:
            shares = [ShareReader(feed, worker, workers) for worker in range(workers)]
            pool = self._stack.enter_context(Workers(shares, "loader worker", _loaded))
            self._batches = pool.map(repeat(None), prefetch)
            weakref.finalize(self, self._stack.close).atexit = False

    def __next__(self) -> Loaded:
        batch = next(self._batches, None)
        if batch is None:
            raise StopIteration
        return batch

    def close(self) -> None:
        """End the workers and the reading. After that, there are no more batches."""
        self._stack.close()
        self._batches = iter(())

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _loaded(read: tuple[Header, NDArray[np.int32]] | None) -> Loaded | None:
    if read is None:
        return None
    header, block = read
    # numpy widens the numbers: torch would start a pool of threads for each thread that calls it.
    tensor = torch.empty(len(block), dtype=torch.int64, pin_memory=_pinned())
    tensor.numpy()[:] = block
    return header, tensor


@cache
def _pinned() -> bool:
    """Whether there is a device to which pinned memory is copied while the host goes on."""
    return torch.cuda.is_available()


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What is computed at once of a global batch, as the network reads it."""

    source: Tokens
    target: Tokens
    number: int = 0
    """Which of the global batch's it is: dropout follows from it, whoever computes it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step learns from: in figures all of it, in micro-batches this rank's share."""

    header: Header
    """The figures of the global batch, and where the data continues after it."""
    micro_batches: list[MicroBatch]
    flops: float
    """Arithmetic of this rank's share on real tokens."""


def read_batches(
    feed: Feed, workers: int, config: ModelConfig, runtime: Runtime
) -> Iterator[Batch]:
    """The batches of a feed, on this rank's device."""
    with Loader(feed, workers) as loader:
        for header, block in loader:
            yield to_batch(header, block, config, runtime)


def to_batch(
    header: Header, block: Int[Tensor, " _"], config: ModelConfig, runtime: Runtime
) -> Batch:
    """This rank's share of a batch, on its device."""
    return Batch(
        header,
        to_micro_batches(header, block, runtime),
        flops=sum(
            training_flops(config, _lengths(source), _lengths(target))
            for _, source, target in header.cut(block)
        ),
    )


def to_micro_batches(
    header: Header, block: Int[Tensor, " _"], runtime: Runtime
) -> list[MicroBatch]:
    """Move a block to the device and cut it; micro-batches without a single pair are left out."""
    rank, n_ranks = runtime.world.rank, runtime.world.size
    # The host does not wait for the copy of a pinned block.
    moved = block.to(runtime.device, non_blocking=True)
    return [
        MicroBatch(
            _tokens(source, shape.row_tiles, runtime),
            _tokens(target, shape.row_tiles, runtime),
            number=rank + index * n_ranks,
        )
        for index, (shape, source, target) in enumerate(header.cut(moved))
        if shape.n_pairs > 0
    ]


def _tokens(side: Int[Tensor, "3 B L"], row_tiles: int, runtime: Runtime) -> Tokens:
    """A side as tokens. On a CPU, where shapes are free, without its padding."""
    ids, segments, positions = side
    tokens = Tokens.tiled(ids, segments, positions, row_tiles=row_tiles)
    return tokens.without_padding() if runtime.device.type == "cpu" else tokens


def _lengths(side: Int[Tensor, "3 B L"]) -> NDArray[np.int64]:
    """Tokens of each pair's sentence; segment 0 is padding."""
    _, segments, _ = side
    return np.bincount(segments.flatten().numpy())[1:]


def training_flops(
    config: ModelConfig, sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> float:
    """FLOPs of one step: 6 for each multiply-add of the forward pass, backward included.

    Only real tokens count: every matrix once a token, and attention inside sentences.

    Args:
        config: The network.
        sources: The length of each source sentence.
        targets: Those of their translations.
    """
    h_dk, h_dv = config.n_heads * config.d_k, config.n_heads * config.d_v
    attention = config.d_model * (2 * h_dk + h_dv) + h_dv * config.d_model
    keys_and_values = config.d_model * (h_dk + h_dv)
    feed_forward = 2 * config.d_model * config.d_ff
    source_tokens, target_tokens = int(sources.sum()), int(targets.sum())
    encoder = source_tokens * (attention + feed_forward)
    decoder = target_tokens * (2 * attention - keys_and_values + feed_forward)
    decoder += source_tokens * keys_and_values
    # (query, key) pairs: source to source, target to what is before it, target to source.
    seen = sources * sources + targets * (targets + 1) // 2 + targets * sources
    inside = int(seen.sum()) * (h_dk + h_dv)
    projection = target_tokens * config.d_model * config.vocab_size
    return 6.0 * (config.n_layers * (encoder + decoder + inside) + projection)
