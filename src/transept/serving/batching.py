"""Sentences of all requests together, through models that one thread owns.

A request is a job of several items. The thread takes items of the jobs in turn, one of each and
round again, so that a long text does not keep short ones waiting; only items that ask for the same
are decoded together. What comes out for an item does not depend on the others in its batch.
"""

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from transept.errors import TranseptError

log = logging.getLogger("transept.serving")

Item = TypeVar("Item")
Result = TypeVar("Result")
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out")


class Ask(Protocol[In, Out]):
    """What is asked for; equal ones are answered together."""

    def __hash__(self) -> int: ...

    def run(self, items: Sequence[In], watch: Callable[[], None]) -> list[Out]:
        """A result for each item. `watch`, called now and then, raises to end it early."""


class OverloadedError(TranseptError):
    """More waits than may wait."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"the server is busy; try again in {seconds} s")
        self.seconds = seconds


class _AbandonedError(Exception):
    """Nobody waits for this batch any more."""


class Job(Generic[Item, Result]):
    """Items of one request, and their results as they come. It lives on the event loop."""

    def __init__(
        self, ask: Ask[Item, Result], items: Sequence[Item], drop: "Callable[[_AnyJob], None]"
    ) -> None:
        self.ask, self.items = ask, items
        self.untaken = deque(range(len(items)))
        self.given_up = False
        self._drop = drop
        loop = asyncio.get_running_loop()
        self._results: list[asyncio.Future[Result]] = [loop.create_future() for _ in items]

    async def __aiter__(self) -> AsyncIterator[Result]:
        """The results in order, each as soon as it is there."""
        for result in self._results:
            yield await result

    async def results(self) -> list[Result]:
        """All results."""
        return [result async for result in self]

    def give_up(self) -> None:
        """Nobody waits any more: what has not begun never will."""
        self.given_up = True
        self._drop(self)
        for result in self._results:
            if not result.cancel() and not result.cancelled():
                result.exception()  # it was seen: not asked for, but not forgotten either

    def deliver(self, index: int, result: Result | Exception) -> None:
        """Note the result of an item, if it is still wanted."""
        future = self._results[index]
        if future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


_AnyJob = Job[Any, Any]
_Batch = list[tuple[_AnyJob, int]]


@dataclass(frozen=True)
class Capacity:
    """How much is taken on, and how much at once."""

    batch: int
    queue: int
    gather_seconds: float


class Watcher(Protocol):
    """Told what happens: the metrics."""

    def batch_done(self, n_items: int, seconds: float) -> None:
        """A batch was decoded."""


class Batcher:
    """The queue, and the thread that empties it."""

    def __init__(self, capacity: Capacity, watcher: Watcher) -> None:
        self._capacity, self._watcher = capacity, watcher
        self._jobs: deque[_AnyJob] = deque()
        self._waiting = 0
        self._stopping = False
        self._changed = threading.Condition()
        self._seconds_per_item = 0.05
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="decoding", daemon=True)

    # --- on the event loop -------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work, for requests of the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Finish the batch that is under way, and no other."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    @property
    def alive(self) -> bool:
        """Whether anybody works."""
        return self._thread.is_alive() and not self._stopping

    @property
    def waiting(self) -> int:
        """Items that nobody has begun with."""
        return self._waiting

    def submit(self, ask: Ask[Item, Result], items: Sequence[Item]) -> Job[Item, Result]:
        """Queue a job, or say when to come back."""
        with self._changed:
            if self._waiting + len(items) > self._capacity.queue:
                raise OverloadedError(max(1, math.ceil(self._waiting * self._seconds_per_item)))
            job = Job(ask, items, self._forget)
            if items:
                self._jobs.append(job)
                self._waiting += len(items)
                self._changed.notify()
        return job

    def _forget(self, job: _AnyJob) -> None:
        with self._changed:
            self._waiting -= len(job.untaken)
            job.untaken.clear()
            if job in self._jobs:
                self._jobs.remove(job)

    # --- in the thread -----------------------------------------------------------------------

    def _work(self) -> None:
        while batch := self._take():
            start = time.perf_counter()
            results = _run(batch)
            seconds = time.perf_counter() - start
            # A moving mean: what a client is told to wait follows what the machine can do now.
            self._seconds_per_item += 0.2 * (seconds / len(batch) - self._seconds_per_item)
            self._watcher.batch_done(len(batch), seconds)
            assert self._loop is not None
            self._loop.call_soon_threadsafe(_deliver, batch, results)

    def _take(self) -> _Batch:
        """The next batch; empty when it is time to stop."""
        batch: _Batch = []
        with self._changed:
            while not batch and not self._stopping:
                self._changed.wait_for(lambda: self._jobs or self._stopping)
                self._changed.wait_for(
                    lambda: self._waiting >= self._capacity.batch or self._stopping,
                    timeout=self._capacity.gather_seconds,
                )
                batch = self._choose() if self._jobs else []
        return batch

    def _choose(self) -> _Batch:
        """One item of each job that asks for what the first asks for, and round again."""
        ask = self._jobs[0].ask
        alike = [job for job in self._jobs if job.ask == ask]
        batch: _Batch = []
        while alike and len(batch) < self._capacity.batch:
            for job in alike[: self._capacity.batch - len(batch)]:
                batch.append((job, job.untaken.popleft()))
            alike = [job for job in alike if job.untaken]
        self._waiting -= len(batch)
        # Whoever asks for something else comes first next time.
        others = [job for job in self._jobs if job.ask != ask]
        self._jobs = deque(
            [*others, *(job for job in self._jobs if job.ask == ask and job.untaken)]
        )
        return batch


def _run(batch: _Batch) -> list[Any]:
    """The results of a batch; where it fails, of each item by itself, so that one spoils none."""
    jobs = [job for job, _ in batch]

    def watch() -> None:
        if all(job.given_up for job in jobs):
            raise _AbandonedError

    try:
        return list(jobs[0].ask.run([job.items[index] for job, index in batch], watch))
    except Exception as error:
        if isinstance(error, _AbandonedError) or len(batch) == 1:
            return [error] * len(batch)
    return [result for one in batch for result in _run([one])]


def _deliver(batch: _Batch, results: list[Any]) -> None:
    for (job, index), result in zip(batch, results, strict=True):
        job.deliver(index, result)
