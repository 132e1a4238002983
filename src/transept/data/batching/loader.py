"""The loader: batches in the plan's order, read ahead by worker processes or in this one.

Workers share nothing. Each makes the plan for itself, which is cheap, and reads every n-th batch.
So the batches and their order are the same for any number of workers.
"""

import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray

from transept.data.batching.collation import Header
from transept.data.batching.feed import Feed, ShareReader
from transept.errors import ConfigError
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
