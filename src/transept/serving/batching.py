"""Sentences of all requests together, through models that one thread owns.

A request is a job of several items. The thread takes items of the jobs in turn, one of each and
round again, so that a long text does not keep short ones waiting; only items that ask for the same
are decoded together. What comes out for an item does not depend on the others in its batch. Whoever
comes while a batch is under way waits for its end; so a batch takes no more than it can do in about
a second, by what batches before it took.

Streams are decoded by themselves, a step at a time. Between batches they take steps in turn, for at
most half as long as the last batch took: neither keeps the other waiting for its end.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from transept.errors import TranseptError
from transept.serving.jobs import AnyAsk, AnyJob, AnyStream, Ask, Item, Job, Result, Stream

STREAMS_SHARE = 0.5
"""Time for streams, for each second that a batch took."""
UNMEASURED = 0.0005
"""Seconds for a token of a hypothesis, until it is known: rather slow, so that it is known soon."""

_Batch = list[tuple[AnyJob, int]]


class OverloadedError(TranseptError):
    """More waits than may wait."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"the server is busy; try again in {self.seconds} s")


class StoppingError(TranseptError):
    """The server stops, and this is not done yet."""

    def __init__(self) -> None:
        super().__init__("the server was stopped before this was done; try again in a while")


class _AbandonedError(Exception):
    """Nobody waits for this batch any more."""


@dataclass(frozen=True)
class Capacity:
    """How much is taken on, and how much at once."""

    batch: int
    """Items, if they are searched with this beam; with a wider one fewer, for they take longer."""
    beam_size: int
    queue: int
    streams: int
    gather_seconds: float
    batch_seconds: float
    """How long a batch is to take, about, unless it is a single item."""

    def room(self, beam_size: int) -> int:
        """How many items are decoded together."""
        return max(1, min(self.batch, self.batch * self.beam_size // beam_size))


class _Pace:
    """How fast items of each kind of ask are done, by their sizes: as the last batches were."""

    def __init__(self) -> None:
        self._seconds: dict[type, float] = {}

    def seconds(self, ask: AnyAsk) -> float:
        """For each token of each hypothesis."""
        return self._seconds.get(type(ask), UNMEASURED)

    def measured(self, ask: AnyAsk, size: int, seconds: float) -> None:
        """Items of this size together took so long."""
        usual, now = self.seconds(ask), seconds / (size * ask.beam_size)
        # A machine that was asleep once is not slow for ever.
        self._seconds[type(ask)] = usual + 0.5 * (min(now, 4 * usual) - usual)


class Watcher(Protocol):
    """Told what happens: the metrics."""

    def batch_done(self, n_items: int, seconds: float) -> None:
        """A batch was decoded."""

    def streams_advanced(self, seconds: float) -> None:
        """Streams took steps."""


class Batcher:
    """The queue, the streams, and the thread that works for both."""

    def __init__(self, capacity: Capacity, watcher: Watcher) -> None:
        self._capacity, self._watcher = capacity, watcher
        self._jobs: deque[AnyJob] = deque()
        self._streams: deque[AnyStream] = deque()
        self._open: set[AnyJob] = set()
        self._waiting = 0
        self._gave_up = False
        self._stopping = False
        self._changed = threading.Condition()
        self._seconds_per_item = 0.05
        self._seconds_per_stream = 1.0
        self._pace = _Pace()
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

    def give_up(self) -> None:
        """Let everyone go who waits, with an error: there is no more time."""
        self._gave_up = True
        for job in self._open:
            job.fail(StoppingError())
        with self._changed:
            streams = [*self._streams]
        for stream in streams:
            stream.end(StoppingError())

    @property
    def alive(self) -> bool:
        """Whether anybody works."""
        return self._thread.is_alive() and not self._stopping

    @property
    def waiting(self) -> int:
        """Items that nobody has begun with."""
        return self._waiting

    @property
    def streaming(self) -> int:
        """Streams that somebody reads."""
        with self._changed:
            return sum(not stream.given_up for stream in self._streams)

    def submit(self, ask: Ask[Item, Result], items: Sequence[Item]) -> Job[Item, Result]:
        """Queue a job, or say when to come back."""
        self._check_open()
        with self._changed:
            if self._waiting + len(items) > self._capacity.queue:
                raise OverloadedError(self._waiting * self._seconds_per_item)
            job = Job(ask, items, self._forget)
            self._open.add(job)
            if items:
                self._jobs.append(job)
                self._waiting += len(items)
                self._changed.notify()
        return job

    def open(self, steps: Generator[Result, None, None]) -> Stream[Result]:
        """Begin a stream, or say when to come back."""
        self._check_open()
        stream = Stream(steps)
        with self._changed:
            read = [other for other in self._streams if not other.given_up]
            if len(read) >= self._capacity.streams:
                age = stream.begun - min(other.begun for other in read)
                raise OverloadedError(self._seconds_per_stream - age)
            self._streams.append(stream)
            self._changed.notify()
        return stream

    def _check_open(self) -> None:
        if self._gave_up:
            raise StoppingError

    def _forget(self, job: AnyJob) -> None:
        self._open.discard(job)
        with self._changed:
            self._waiting -= len(job.untaken)
            job.untaken.clear()
            if job in self._jobs:
                self._jobs.remove(job)

    # --- in the thread -----------------------------------------------------------------------

    def _work(self) -> None:
        while not self._stopping:
            batch = self._take()
            seconds = self._decode(batch) if batch else 0.0
            self._advance(STREAMS_SHARE * seconds)

    def _decode(self, batch: _Batch) -> float:
        """Answer a batch; how long that took."""
        start = time.perf_counter()
        results = _run(batch)
        seconds = time.perf_counter() - start
        # A moving mean: what a client is told to wait follows what the machine can do now.
        self._seconds_per_item += 0.2 * (seconds / len(batch) - self._seconds_per_item)
        if not isinstance(results[0], Exception):  # else it may have ended early
            size = sum(job.sizes[index] for job, index in batch)
            self._pace.measured(batch[0][0].ask, size, seconds)
        self._watcher.batch_done(len(batch), seconds)
        self._tell(_deliver, batch, results)
        return seconds

    def _take(self) -> _Batch:
        """The next batch; empty where there are only streams, or when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._streams or self._stopping)
            # While streams take their steps, there is time enough to gather.
            if not self._streams:
                self._changed.wait_for(
                    lambda: self._waiting >= self._capacity.batch or self._stopping,
                    timeout=self._capacity.gather_seconds,
                )
            return self._choose() if self._jobs and not self._stopping else []

    def _choose(self) -> _Batch:
        """One item of each job that asks for what the first asks for, and round again."""
        ask = self._jobs[0].ask
        turns = deque(job for job in self._jobs if job.ask == ask)
        batch: _Batch = []
        room, seconds = self._capacity.room(ask.beam_size), self._capacity.batch_seconds
        pace = self._pace.seconds(ask) * ask.beam_size
        while turns and len(batch) < room:
            job = turns[0]
            seconds -= pace * job.sizes[job.untaken[0]]
            if batch and seconds < 0:
                break
            batch.append((job, job.untaken.popleft()))
            turns.popleft()
            if job.untaken:
                turns.append(job)
        self._waiting -= len(batch)
        # Whoever asks for something else comes first next time, then whose turn it would be.
        others = [job for job in self._jobs if job.ask != ask]
        self._jobs = deque([*others, *turns])
        return batch

    def _advance(self, seconds: float) -> None:
        """Let the streams take steps in turn for so long, or one where that is no time."""
        start = time.perf_counter()
        taken = 0.0
        while self._streams and (not taken or taken < seconds):
            stream = self._streams[0]
            goes_on = self._step(stream)
            with self._changed:
                self._streams.popleft()
                if goes_on:
                    self._streams.append(stream)
            now = time.perf_counter()
            taken = now - start
            if not goes_on:
                self._seconds_per_stream += 0.2 * (now - stream.begun - self._seconds_per_stream)
        if taken:
            self._watcher.streams_advanced(taken)

    def _step(self, stream: AnyStream) -> bool:
        """Let a stream grow; whether it may grow further."""
        if stream.given_up:
            stream.steps.close()
            return False
        try:
            self._tell(stream.deliver, next(stream.steps))
        except Exception as error:
            self._tell(stream.end, error)
            return False
        return True

    def _tell(self, what: Any, *news: Any) -> None:
        """Call something on the event loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(what, *news)


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
