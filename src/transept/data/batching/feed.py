"""What a loader reads, and the process that reads some of it ahead of time."""

import signal
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.collation import Header, collate
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import START, Plan, Position
from transept.data.config import BatchConfig
from transept.errors import ConfigError, Problem
from transept.runtime.interrupt import STOP_SIGNALS


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


@dataclass(frozen=True, slots=True)
class Failure:
    """What a worker says when it cannot go on."""

    what: str
    trace: str


def serve(connection: Connection, feed: Feed, worker: int, workers: int) -> None:
    """Be a worker: send a header and a block for each batch, and None after the last.

    Sending waits until the loader receives, so a worker is never more than a batch ahead of it.
    """
    # These signals ask the trainer to save and stop, but reach all processes of its group. The
    # trainer may need one more batch before it stops, so a worker does not hear them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    # A loader that was closed or killed no longer receives. That is how a worker ends.
    with suppress(BrokenPipeError, ConnectionResetError):
        try:
            for header, block in feed.blocks(worker, workers):
                connection.send(header)
                connection.send_bytes(block.data)
            connection.send(None)
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            connection.send(Failure(f"{type(error).__name__}: {error}", traceback.format_exc()))
