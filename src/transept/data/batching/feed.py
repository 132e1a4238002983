"""From a plan to ids: reads the pairs of a batch and lays them out with vectorized operations.

A worker sends each batch to the training process as one block of numbers. This module and its
imports use numpy but not torch, so that a worker starts in a fraction of a second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.layouts import BatchPlan, MicroPlan, Shape
from transept.data.batching.mixture import Mixture, Numbers
from transept.data.batching.plan import START, Plan, Position
from transept.data.config import BatchConfig
from transept.errors import ConfigError, Problem

FIELDS = ("ids", "segments", "positions")
"""The fields of a block for each position of a side: the token id, the number of its pair in the
micro-batch (from 1), and its position in the sentence (from 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Describes a block: statistics of the global batch, and the shapes of one rank's share."""

    next: Position
    """Where the data continues after this batch."""
    hash: str
    """Equal hashes mean the same pairs, micro-batch by micro-batch."""
    n_pairs: int
    n_source_tokens: int
    """Real source tokens, without padding."""
    n_target_tokens: int
    """Real target tokens. The summed loss is divided by this number."""
    n_positions: int
    """Token positions on both sides, including padding."""
    shapes: tuple[Shape, ...]

    def cut(self, block: Any) -> Iterator[tuple[Shape, Any, Any]]:
        """Yield the shape of each micro-batch of a block, and views of its two sides.

        The block is an array or a tensor. A side has shape [field, row, position], with the
        fields of `FIELDS`.
        """
        start = 0
        for shape in self.shapes:
            sides = []
            for width in (shape.source_width, shape.target_width):
                stop = start + len(FIELDS) * shape.n_rows * width
                sides.append(block[start:stop].reshape(len(FIELDS), shape.n_rows, width))
                start = stop
            yield shape, sides[0], sides[1]


def collate(
    following: Position, batch: BatchPlan, share: Sequence[MicroPlan], mixture: Mixture
) -> tuple[Header, NDArray[np.int32]]:
    """Read a share of a batch; `following` is the position after it.

    The block holds, for each micro-batch in turn, the fields of its source side and then those
    of its target side. Positions without a token hold 0 in every field: the pad id and segment 0.
    """
    header = Header(
        next=following,
        hash=batch.hash,
        n_pairs=batch.n_pairs,
        n_source_tokens=batch.n_source_tokens,
        n_target_tokens=batch.n_target_tokens,
        n_positions=batch.n_positions,
        shapes=tuple(micro.shape for micro in share),
    )
    size = sum(micro.shape.source_positions + micro.shape.target_positions for micro in share)
    block = np.zeros(len(FIELDS) * size, dtype=np.int32)
    for micro, (_, source, target) in zip(share, header.cut(block), strict=True):
        pairs = micro.pairs
        for ids, at, lengths, side in (
            (mixture.read("source", pairs.numbers), micro.source_at, pairs.sources, source),
            (mixture.read("target", pairs.numbers), micro.target_at, pairs.targets, target),
        ):
            _lay_out(ids, at, lengths, side.reshape(len(FIELDS), -1))
    return header, block


def _lay_out(
    ids: NDArray[np.int32], at: Numbers, lengths: NDArray[np.int32], fields: NDArray[np.int32]
) -> None:
    """Write each sentence's ids, number and positions into the fields; the rest stays 0."""
    begins = np.cumsum(lengths, dtype=np.int64) - lengths
    positions = np.arange(len(ids)) - np.repeat(begins, lengths)
    index = np.repeat(at, lengths) + positions
    fields[0, index] = ids
    fields[1, index] = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    fields[2, index] = positions


@dataclass(frozen=True, kw_only=True, slots=True)
class Feed:
    """One rank's share of the batches of a plan, from a given position on."""

    mixture: Mixture
    config: BatchConfig
    seed: int
    start: Position = START
    epochs: int | None = None
    """Number of the epoch to stop before. None: never stop."""
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_shares(self.config, self.world_size)
        if not 0 <= self.rank < self.world_size:
            raise ConfigError(f"rank {self.rank} is not below the world size {self.world_size}")

    def blocks(
        self, worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[Header, NDArray[np.int32]]]:
        """Read the batches. With n workers, each reads every n-th."""
        plan = Plan(self.mixture, self.config, self.seed)
        batches = plan.batches(self.start, self.epochs)
        for following, batch in islice(batches, worker, None, workers):
            share = batch.micro[self.rank :: self.world_size]
            yield collate(following, batch, share, self.mixture)


def check_shares(config: BatchConfig, world_size: int) -> None:
    """Check that there is at least one micro-batch per rank. Some ranks may have one more."""
    n = config.micro_batches
    if n < world_size:
        what = (
            f"{n} cannot be divided among {world_size} ranks; "
            f"set batch.micro_batches={world_size}, or a multiple of it"
        )
        raise ConfigError([Problem("batch.micro_batches", what)])


class ShareReader:
    """Every n-th block of a feed, one per call, as a worker process reads them."""

    def __init__(self, feed: Feed, worker: int, workers: int) -> None:
        self._feed = feed
        self._worker = worker
        self._workers = workers
        self._blocks: Iterator[tuple[Header, NDArray[np.int32]]] | None = None

    def __call__(self, _: None) -> tuple[Header, NDArray[np.int32]] | None:
        """Return the next block, or None after the last."""
        if self._blocks is None:
            self._blocks = self._feed.blocks(self._worker, self._workers)
        return next(self._blocks, None)
