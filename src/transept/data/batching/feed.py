"""What a loader reads, and what a worker process reads of it ahead of time."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.collation import Header, collate
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import START, Plan, Position
from transept.data.config import BatchConfig
from transept.errors import ConfigError, Problem


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
