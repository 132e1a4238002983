"""Training batches in the order of the plan, read ahead and moved to the device.

Worker processes share nothing. Each computes the plan itself, which is cheap, and reads every
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
from transept.runtime.products import convenient
from transept.runtime.workers import Workers
from transept.shapes import Int, Tensor

Loaded = tuple[Header, Int[Tensor, " _"]]
"""A header and its block, which is contiguous: one copy moves the batch to a device."""


class Loader(Iterator[Loaded]):
    """The batches of a feed. Use it in a `with` block or close it: it may own processes."""

    def __init__(self, feed: Feed, workers: int = 0, prefetch: int = 16) -> None:
        """Start reading.

        Args:
            feed: The batches.
            workers: Processes that read ahead. With 0, each batch is read on request.
            prefetch: Batches that workers keep ready. They cover the time in which every worker
                plans the next window.
        """
        if workers < 0 or prefetch < 1:
            raise ConfigError(
                f"workers must be at least 0 and prefetch at least 1, not {workers} and {prefetch}"
            )
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
        """Stop reading and end the workers. The loader then yields no more batches."""
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
    # numpy converts the type: torch would start a thread pool for each calling thread.
    tensor = torch.empty(len(block), dtype=torch.int64, pin_memory=_pinned())
    tensor.numpy()[:] = block
    return header, tensor


@cache
def _pinned() -> bool:
    """Whether a GPU can copy from pinned memory while the host continues."""
    return torch.cuda.is_available()


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The part of a global batch that is computed in one pass."""

    source: Tokens
    target: Tokens
    number: int = 0
    """Its number in the global batch. Dropout is seeded with it, so it is the same on any rank."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The data of one step: the header of the global batch, and this rank's micro-batches."""

    header: Header
    """Statistics of the global batch, and the position in the data after it."""
    micro_batches: list[MicroBatch]
    flops: float
    """FLOPs of this rank's share, padding not counted."""


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
    """Move a block to the device and split it; empty micro-batches are dropped."""
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
    """Source or target as tokens. On a CPU, where shapes may vary, most padding is removed."""
    ids, segments, positions = side
    tokens = Tokens.tiled(ids, segments, positions, row_tiles=row_tiles)
    return tokens.without_padding(convenient) if runtime.device.type == "cpu" else tokens


def _lengths(side: Int[Tensor, "3 B L"]) -> NDArray[np.int64]:
    """The number of tokens in each sentence; segment 0 is padding."""
    _, segments, _ = side
    return np.bincount(segments.flatten().numpy())[1:]


def training_flops(
    config: ModelConfig, sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> float:
    """FLOPs of one step: 6 per multiply-add of the forward pass, backward pass included.

    Padding is not counted: each matrix counts once per token, attention within sentences.

    Args:
        config: The network.
        sources: The length of each source sentence.
        targets: The length of each target sentence.
    """
    h_dk, h_dv = config.n_heads * config.d_k, config.n_heads * config.d_v
    attention = config.d_model * (2 * h_dk + h_dv) + h_dv * config.d_model
    keys_and_values = config.d_model * (h_dk + h_dv)
    feed_forward = 2 * config.d_model * config.d_ff
    source_tokens, target_tokens = int(sources.sum()), int(targets.sum())
    encoder = source_tokens * (attention + feed_forward)
    decoder = target_tokens * (2 * attention - keys_and_values + feed_forward)
    decoder += source_tokens * keys_and_values
    # (query, key) pairs: source to source, target to earlier target, target to source.
    encoder += int((sources * sources).sum()) * (h_dk + h_dv)
    decoder += int((targets * (targets + 1) // 2 + targets * sources).sum()) * (h_dk + h_dv)
    projection = target_tokens * config.d_model * config.vocab_size
    return 6.0 * (config.n_layers * encoder + config.decoder_depth * decoder + projection)
