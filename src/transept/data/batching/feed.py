"""From a plan to ids: the pairs of a batch are read and laid out, without a look at each token.

What is made here crosses from a worker to the training process as one block of numbers, so this
module and those below it import numpy and no torch: a worker starts in a fraction of a second.
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
"""What a block holds for each place of a side: the token id, the number of its pair in the
micro-batch from 1, and its place in its sentence from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What goes with a block: the global batch in figures, the share of one rank in shapes."""

    next: Position
    """Where the data continues after this batch."""
    hash: str
    """Equal hashes mean the same pairs, micro-batch by micro-batch."""
    n_pairs: int
    n_source_tokens: int
    """Real source tokens, padding not counted."""
    n_target_tokens: int
    """Real target tokens: what the summed loss is divided by."""
    n_places: int
    """Places for tokens on both sides, padding counted."""
    shapes: tuple[Shape, ...]

    def cut(self, block: Any) -> Iterator[tuple[Shape, Any, Any]]:
        """Each micro-batch of a block, an array or a tensor: its shape, and views of its two sides.

        A side is of shape [field, row, place], with the fields of `FIELDS`.
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

    The block holds, micro-batch after micro-batch, the fields of its source side and then those
    of its target side. Places without a token hold 0 in each: the pad id, and segment 0.
    """
    header = Header(
        next=following,
        hash=batch.hash,
        n_pairs=batch.n_pairs,
        n_source_tokens=batch.n_source_tokens,
        n_target_tokens=batch.n_target_tokens,
        n_places=batch.n_places,
        shapes=tuple(micro.shape for micro in share),
    )
    places = sum(micro.shape.source_places + micro.shape.target_places for micro in share)
    block = np.zeros(len(FIELDS) * places, dtype=np.int32)
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
    """Write each sentence's ids, number and positions where it stands; elsewhere stays 0."""
    begins = np.cumsum(lengths, dtype=np.int64) - lengths
    positions = np.arange(len(ids)) - np.repeat(begins, lengths)
    places = np.repeat(at, lengths) + positions
    fields[0, places] = ids
    fields[1, places] = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    fields[2, places] = positions


@dataclass(frozen=True, kw_only=True, slots=True)
class Feed:
    """The batches of a plan from some position on; of each, the share of one rank."""

    mixture: Mixture
    config: BatchConfig
    seed: int
    start: Position = START
    epochs: int | None = None
    """End before the epoch of this number; None: never."""
    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        check_shares(self.config, self.world_size)
        if not 0 <= self.rank < self.world_size:
            raise ConfigError(f"there is no rank {self.rank} among {self.world_size}")

    def blocks(
        self, worker: int = 0, workers: int = 1
    ) -> Iterator[tuple[Header, NDArray[np.int32]]]:
        """Read the batches; of several workers, each takes every n-th."""
        plan = Plan(self.mixture, self.config, self.seed)
        batches = plan.batches(self.start, self.epochs)
        for following, batch in islice(batches, worker, None, workers):
            share = batch.micro[self.rank :: self.world_size]
            yield collate(following, batch, share, self.mixture)


def check_shares(config: BatchConfig, world_size: int) -> None:
    """Make sure that there is a micro-batch for every rank; some may have one more than others."""
    n = config.micro_batches
    if n < world_size:
        what = (
            f"{n} cannot be shared out among {world_size} ranks: "
            f"say batch.micro_batches={world_size}, or a multiple of it"
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
        """The next block; None after the last."""
        if self._blocks is None:
            self._blocks = self._feed.blocks(self._worker, self._workers)
        return next(self._blocks, None)
