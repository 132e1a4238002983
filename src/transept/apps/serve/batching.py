"""All requests together: one thread decodes their sentences in batches, and their streams.

A request is a job of several items, such as sentences. The thread takes one item of each job in
turn and then begins again with the first job, so that a long text does not keep short ones waiting.
Only items of equal operations are decoded together: the same model and the same options. The result
of an item does not depend on the other items of its batch, except by rounding (docs/engines.md). It
is delivered as soon as it is known.

Items that come while a batch is running are admitted to it if they have the same operation, if the
search can admit items while it runs, and if there is room. The batch has room for as many items as
can be done in about a second, judged by the speed of earlier batches. As soon as a job with another
operation waits, no item is admitted any more, so that this job has its turn.

A stream is decoded by itself, one step at a time. Between two batches the streams take steps in
turn, for at most half as long as the last batch took. So no batch waits for the end of a stream,
and no stream for the end of all batches. While there are streams, no item is admitted to a running
batch.

Jobs and streams belong to the event loop. The thread delivers its results to them there.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from transept.apps.serve.operations import ALL, Item, Job, Operation, Result, Stream
from transept.apps.serve.settings import ServerSettings
from transept.errors import TranseptError

STREAMS_SHARE = 0.5
"""Seconds for all streams together, for each second that the batch before them took."""
UNMEASURED = 0.0005
"""Seconds for a token of a hypothesis, until a batch was measured. It is a slow guess, so that the
first batch is small and soon measured."""


class OverloadedError(TranseptError):
    """The queue, or the list of streams, is full."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"the server is busy; try again in {self.seconds} s")


class StoppingError(TranseptError):
    """The server stops before this request is done."""

    def __init__(self) -> None:
        super().__init__("the server was stopped before this was done; try again in a while")


class _AbandonedError(Exception):
    """Every client that waited for this batch has gone."""


_Operation = Operation[Any, Any]
_Job = Job[Any, Any]
_Item = tuple[_Job, int]
"""A job, and the index of one of its items."""


class _Batch:
    """Items that are decoded together: those of the beginning, and those admitted later."""

    def __init__(self, operation: _Operation) -> None:
        self.operation = operation
        self.running: dict[int, _Item] = {}
        """The items that are not done, by number. They are numbered in the order of admission."""
        self.n_admitted = 0
        self._end = 0
        """The measurement ends when all items with lower numbers are done."""
        self.measure()

    def add(self, items: Sequence[_Item]) -> None:
        self.running.update(enumerate(items, self.n_admitted))
        self.n_admitted += len(items)
        self._end = self._end or self.n_admitted

    def finish(self, number: int) -> _Item:
        job, index = self.running.pop(number)
        self.sizes_done.append(job.sizes[index])
        return job, index

    @property
    def size(self) -> int:
        """The tokens of all items that are not done."""
        return sum(job.sizes[index] for job, index in self.running.values())

    def measure(self) -> None:
        """Begin a new measurement of how long items take."""
        self.begun = time.perf_counter()
        self.sizes_done: list[int] = []
        """The tokens of each item that was done since then."""
        self._end = self.n_admitted if self.running else 0

    @property
    def is_measured(self) -> bool:
        """Whether all items are done that were in the batch when the measurement began.

        A batch that is always refilled has no end, so this takes the place of one.
        """
        is_over = next(iter(self.running), self.n_admitted) >= self._end
        return is_over and bool(self.sizes_done)


class Batcher:
    """The queue of jobs, the streams, and the thread that decodes both."""

    def __init__(self, settings: ServerSettings, decoded: Callable[[int, float], None]) -> None:
        self._settings = settings
        self._decoded = decoded
        """Called with the items and the seconds of each batch; with 0 items for streams."""
        self._jobs: deque[_Job] = deque()
        self._streams: deque[Stream[Any]] = deque()
        self._unanswered: set[_Job] = set()
        """The jobs whose clients still wait."""
        self.waiting = 0
        """The items of all jobs that wait for a batch."""
        self._stopping = False
        """Whether new requests are refused and the thread is to end."""
        self._changed = threading.Condition()
        """Guards the jobs, the streams and what is waiting; notified when there is more to do."""
        self._seconds_per_item = 0.05
        self._seconds_per_token: dict[type, float] = {}
        """How fast each kind of operation is, for each token of each hypothesis."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="decoding", daemon=True)

    def start(self) -> None:
        """Start the thread. Results are delivered on the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Let the thread finish the batch that is running, and end it."""
        self._close()
        await asyncio.to_thread(self._thread.join)

    def fail_all(self) -> None:
        """Refuse new requests, and answer all that wait with an error: the time to stop is over."""
        for stream in self._close():
            stream.end(StoppingError())
        for job in self._unanswered:
            job.fail(StoppingError())

    def _close(self) -> list[Stream[Any]]:
        with self._changed:
            self._stopping = True
            self._changed.notify()
            return [*self._streams]

    @property
    def alive(self) -> bool:
        """Whether the thread works."""
        return self._thread.is_alive() and not self._stopping

    @property
    def streaming(self) -> int:
        """The streams that a client reads."""
        with self._changed:
            return sum(not stream.cancelled for stream in self._streams)

    def submit(
        self, operation: Operation[Item, Result], items: Sequence[Item]
    ) -> Job[Item, Result]:
        """Put a job into the queue; raise `OverloadedError` if that is full."""
        if self._stopping:
            raise StoppingError
        with self._changed:
            if self.waiting + len(items) > self._settings.queue_limit:
                raise OverloadedError(self.waiting * self._seconds_per_item)
            job = Job(operation, items, self._remove)
            self._unanswered.add(job)
            if items:
                self._jobs.append(job)
                self.waiting += len(items)
                self._changed.notify()
        return job

    def open(self, steps: Generator[Result, None, None]) -> Stream[Result]:
        """Begin a stream; raise `OverloadedError` if there are too many."""
        if self._stopping:
            raise StoppingError
        with self._changed:
            if self.streaming >= self._settings.stream_limit:
                raise OverloadedError(1)
            stream = Stream(steps)
            self._streams.append(stream)
            self._changed.notify()
        return stream

    def _remove(self, job: _Job) -> None:
        """Take a job out of the queue: it was answered, or its client has gone."""
        self._unanswered.discard(job)
        with self._changed:
            self.waiting -= len(job.queued)
            job.queued.clear()
            if job in self._jobs:
                self._jobs.remove(job)

    # All below runs in the thread.

    def _work(self) -> None:
        while not self._stopping:
            operation = self._wait()
            seconds = self._decode(_Batch(operation)) if operation is not None else 0.0
            self._advance_streams(STREAMS_SHARE * seconds)

    def _wait(self) -> _Operation | None:
        """Wait for work, and return the next operation.

        It is None if there are only streams, or if the thread is to end.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._streams or self._stopping)
            # With streams there is no need to wait: items gather while the streams take steps.
            if not self._streams:
                self._changed.wait_for(
                    lambda: self.waiting >= self._settings.batch_sentences or self._stopping,
                    timeout=self._settings.gather_ms / 1000,
                )
            return self._jobs[0].operation if self._jobs and not self._stopping else None

    def _decode(self, batch: _Batch) -> float:
        """Decode a batch, with the items that are admitted to it; return its last measured time."""
        seconds = 0.0
        feed = partial(self._admit, batch)
        try:
            for found in batch.operation.run(feed):
                self._deliver(batch, found)
                if batch.is_measured:
                    size = sum(batch.sizes_done)
                    seconds = self._measured(batch)
                    self._note_speed(batch.operation, seconds / size)
        except Exception as error:
            if not batch.n_admitted:  # it failed before it took any item: those that wait must fail
                feed(ALL)
            for number, result in _one_by_one(batch, error):
                self._deliver(batch, [(number, result)])
            seconds = self._measured(batch)
        return seconds

    def _measured(self, batch: _Batch) -> float:
        """End a measurement and begin the next; return how long the items took."""
        n_done, seconds = len(batch.sizes_done), time.perf_counter() - batch.begun
        if n_done:
            # A moving mean: a refused client is told to wait according to the present speed.
            self._seconds_per_item += 0.2 * (seconds / n_done - self._seconds_per_item)
            self._decoded(n_done, seconds)
            batch.measure()
        return seconds

    def _note_speed(self, operation: _Operation, seconds_per_token: float) -> None:
        usual, now = self._speed(operation), seconds_per_token / operation.beam_size
        # One measurement counts at most four times the usual: a machine that was suspended during a
        # batch is not slow afterwards.
        self._seconds_per_token[type(operation)] = usual + 0.5 * (min(now, 4 * usual) - usual)

    def _speed(self, operation: _Operation) -> float:
        return self._seconds_per_token.get(type(operation), UNMEASURED)

    def _deliver(self, batch: _Batch, found: Iterable[tuple[int, Any]]) -> None:
        done = [(*batch.finish(number), result) for number, result in found]

        def set_results() -> None:
            for job, index, result in done:
                if isinstance(result, Exception):
                    job.fail(result)
                else:
                    job.deliver(index, result)

        self._on_loop(set_results)

    def _admit(self, batch: _Batch, n: int) -> list[Any]:
        """Admit at most n items to a batch, and return them; none while another operation waits.

        This is the feed of the search. It raises an exception if all clients of the batch are gone.
        """
        items = batch.running.values()
        if items and all(job.cancelled for job, _ in items):
            raise _AbandonedError
        with self._changed:
            if not n or not self._jobs or self._stopping:
                return []
            if batch.n_admitted and (self._streams or self._jobs[0].operation != batch.operation):
                return []
            # It is over: a new batch may first wait for items to gather.
            if batch.n_admitted and not batch.running:
                return []
            taken = self._choose(batch, n)
        batch.add(taken)
        return [job.items[index] for job, index in taken]

    def _choose(self, batch: _Batch, n: int) -> list[_Item]:
        """Take items off the queue, one of each job with the batch's operation in turn."""
        operation, taken = batch.operation, list[_Item]()
        turns = deque(job for job in self._jobs if job.operation == operation)
        # Jobs with another operation come first next time, then those whose turn it would be.
        others = [job for job in self._jobs if job.operation != operation]
        n = min(n, self.room(operation.beam_size) - len(batch.running))
        per_token = self._speed(operation) * operation.beam_size
        seconds = self._settings.batch_seconds - per_token * batch.size
        while turns and len(taken) < n:
            job = turns[0]
            seconds -= per_token * job.sizes[job.queued[0]]
            if seconds < 0 and (taken or batch.running):
                break
            taken.append((job, job.queued.popleft()))
            turns.popleft()
            if job.queued:
                turns.append(job)
        self.waiting -= len(taken)
        self._jobs = deque([*others, *turns])
        return taken

    def room(self, beam_size: int) -> int:
        """The most items of a batch with this beam: fewer if it is wider, and so slower."""
        most = self._settings.batch_sentences
        return max(1, min(most, most * self._settings.beam_size // beam_size))

    def _advance_streams(self, seconds: float) -> None:
        """Let the streams take steps in turn for at most this time, but at least one step."""
        start, taken = time.perf_counter(), 0.0
        while self._streams and (not taken or taken < seconds):
            stream = self._streams[0]
            continues = self._step(stream)
            with self._changed:
                self._streams.popleft()
                if continues:
                    self._streams.append(stream)
            taken = time.perf_counter() - start
        if taken:
            self._decoded(0, taken)

    def _step(self, stream: Stream[Any]) -> bool:
        """Let a stream take a step; return whether it can take another."""
        if stream.cancelled:
            stream.steps.close()
            return False
        try:
            self._on_loop(stream.deliver, next(stream.steps))
        except Exception as error:
            self._on_loop(stream.end, error)
            return False
        return True

    def _on_loop(self, function: Any, *arguments: Any) -> None:
        """Call a function on the event loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function, *arguments)


def _one_by_one(batch: _Batch, error: Exception) -> Iterator[tuple[int, Any]]:
    """After a batch failed, the result of each item by itself: one bad item fails no other."""
    is_final = isinstance(error, _AbandonedError) or len(batch.running) == 1
    for number, (job, index) in [*batch.running.items()]:
        yield number, error if is_final else _alone(job, index)


def _alone(job: _Job, index: int) -> Any:
    """The result of one item, or the exception that it led to."""
    left = [job.items[index]]

    def feed(n: int) -> list[Any]:
        if job.cancelled:
            raise _AbandonedError
        return [left.pop()] if n and left else []

    try:
        ((_, result),) = [pair for found in job.operation.run(feed) for pair in found]
    except Exception as error:
        return error
    return result
