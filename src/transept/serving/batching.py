"""Sentences of all requests together, through models that one thread owns.

A request is a job of several items. The thread takes items of the jobs in turn, one of each and
round again, so that a long text does not keep short ones waiting; only items that ask for the same
are decoded together. What comes out for an item does not depend on the others in its batch, and is
delivered as soon as it is there. Whoever comes while a batch is under way and asks for the same is
let in, if the search can do that and has room; no more is under way than can be done in about a
second, by what was done before. As soon as someone waits who asks for something else, nobody is let
in any more.

Streams are decoded by themselves, a step at a time. Between batches they take steps in turn, for at
most half as long as the last batch took: neither keeps the other waiting for its end. While there
are any, nobody is let into a batch.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from transept.errors import TranseptError
from transept.serving.jobs import AnyAsk, AnyJob, AnyStream, Ask, Item, Job, OpenAsk, Result, Stream

STREAMS_SHARE = 0.5
"""Time for streams, for each second that a batch took."""
UNMEASURED = 0.0005
"""Seconds for a token of a hypothesis, until it is known: rather slow, so that it is known soon."""
ALL = 1 << 30
"""More items than ever wait."""

_Item = tuple[AnyJob, int]
_Feed = Callable[[int], list[Any]]


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


class _Batch:
    """What is decoded together: items that were there, and items that were let in."""

    def __init__(self, ask: AnyAsk) -> None:
        self.ask = ask
        self.under_way: dict[int, _Item] = {}
        """By their numbers, the first ones first."""
        self.n_taken = 0
        self._mark = 0
        self.begin()

    def take(self, items: Sequence[_Item]) -> None:
        """Let items in."""
        self.under_way.update(enumerate(items, self.n_taken))
        self.n_taken += len(items)
        self._mark = self._mark or self.n_taken

    def done(self, number: int) -> _Item:
        """An item is done."""
        job, index = self.under_way.pop(number)
        self.sizes_done.append(job.sizes[index])
        return job, index

    @property
    def size(self) -> int:
        """Of all that are under way."""
        return sum(job.sizes[index] for job, index in self.under_way.values())

    def begin(self) -> None:
        """Measure from here on how long it takes."""
        self.begun = time.perf_counter()
        self.sizes_done: list[int] = []
        self._mark = self.n_taken if self.under_way else 0

    @property
    def has_turned_over(self) -> bool:
        """Whether all are done that were under way at the beginning: as good as a whole batch."""
        is_over = next(iter(self.under_way), self.n_taken) >= self._mark
        return is_over and bool(self.sizes_done)


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
            ask = self._wait()
            seconds = self._decode(_Batch(ask)) if ask is not None else 0.0
            self._advance(STREAMS_SHARE * seconds)

    def _wait(self) -> AnyAsk | None:
        """What is asked for next; None where there are only streams, or when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._streams or self._stopping)
            # While streams take their steps, there is time enough to gather.
            if not self._streams:
                self._changed.wait_for(
                    lambda: self._waiting >= self._capacity.batch or self._stopping,
                    timeout=self._capacity.gather_seconds,
                )
            return self._jobs[0].ask if self._jobs and not self._stopping else None

    def _decode(self, batch: _Batch) -> float:
        """Answer a batch, and whoever is let in; how long it took, or the last turnover of it."""
        seconds = 0.0
        feed = partial(self._let_in, batch)
        try:
            for found in _results(batch.ask, feed):
                self._deliver(batch, found)
                if batch.has_turned_over:
                    size = sum(batch.sizes_done)
                    seconds = self._measured(batch)
                    self._pace.measured(batch.ask, size, seconds)
        except Exception as error:
            if not batch.n_taken:  # it failed before it began, but somebody must hear of it
                feed(ALL)
            for number, result in _one_by_one(batch, error):
                self._deliver(batch, [(number, result)])
            seconds = self._measured(batch)
        return seconds

    def _measured(self, batch: _Batch) -> float:
        """Take note of how long it took, and begin anew."""
        n_done, seconds = len(batch.sizes_done), time.perf_counter() - batch.begun
        if not n_done:
            return seconds
        # A moving mean: what a client is told to wait follows what the machine can do now.
        self._seconds_per_item += 0.2 * (seconds / n_done - self._seconds_per_item)
        self._watcher.batch_done(n_done, seconds)
        batch.begin()
        return seconds

    def _deliver(self, batch: _Batch, found: Iterable[tuple[int, Any]]) -> None:
        self._tell(_deliver, [(*batch.done(number), result) for number, result in found])

    def _let_in(self, batch: _Batch, n: int) -> list[Any]:
        """Items for a batch, at most so many; no more once anyone waits for something else."""
        items = batch.under_way.values()
        if items and all(job.given_up for job, _ in items):
            raise _AbandonedError
        with self._changed:
            if not n or not self._jobs or self._stopping:
                return []
            if batch.n_taken and (self._streams or self._jobs[0].ask != batch.ask):
                return []
            if batch.n_taken and not batch.under_way:  # it is over: the next one is gathered first
                return []
            taken = self._choose(batch, n)
        batch.take(taken)
        return [job.items[index] for job, index in taken]

    def _choose(self, batch: _Batch, n: int) -> list[_Item]:
        """One item of each job that asks for what the batch is for, and round again."""
        ask, taken = batch.ask, list[_Item]()
        turns = deque(job for job in self._jobs if job.ask == ask)
        # Whoever asks for something else comes first next time, then whose turn it would be.
        others = [job for job in self._jobs if job.ask != ask]
        n = min(n, self._capacity.room(ask.beam_size) - len(batch.under_way))
        pace = self._pace.seconds(ask) * ask.beam_size
        seconds = self._capacity.batch_seconds - pace * batch.size
        while turns and len(taken) < n:
            job = turns[0]
            seconds -= pace * job.sizes[job.untaken[0]]
            if seconds < 0 and (taken or batch.under_way):
                break
            taken.append((job, job.untaken.popleft()))
            turns.popleft()
            if job.untaken:
                turns.append(job)
        self._waiting -= len(taken)
        self._jobs = deque([*others, *turns])
        return taken

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


def _results(ask: AnyAsk, feed: _Feed) -> Iterable[Iterable[tuple[int, Any]]]:
    """What comes of items that are fed; where the ask lets nobody in, of one batch."""
    if isinstance(ask, OpenAsk):
        return ask.run_feed(feed)
    items = feed(ALL)
    return [enumerate(ask.run(items, lambda: _asked(feed)))] if items else []


def _asked(feed: _Feed) -> None:
    """Let it raise, if nobody waits any more."""
    feed(0)


def _one_by_one(batch: _Batch, error: Exception) -> Iterator[tuple[int, Any]]:
    """Where a batch failed, what comes of each item by itself, so that one spoils none."""
    is_final = isinstance(error, _AbandonedError) or len(batch.under_way) == 1
    for number, (job, index) in [*batch.under_way.items()]:
        yield number, error if is_final else _alone(job, index)


def _alone(job: AnyJob, index: int) -> Any:
    def watch() -> None:
        if job.given_up:
            raise _AbandonedError

    try:
        (result,) = job.ask.run([job.items[index]], watch)
    except Exception as error:
        return error
    return result


def _deliver(found: Sequence[tuple[AnyJob, int, Any]]) -> None:
    for job, index, result in found:
        job.deliver(index, result)
