"""Dynamic batching: one thread decodes the sentences of all requests.

A request is a job with several items, such as sentences. The thread takes one item of each job in
turn (round robin), so that a long text does not delay short ones. Only items of equal operations
are decoded together: the same model and the same options. The result of an item does not depend on
the other items of its batch, except for rounding (docs/engines.md). Each result is delivered as
soon as it is available.

New items join a running batch if they have the same operation, if the search supports it, and if
the batch has capacity. A batch is sized to take about one second, estimated from the speed of
earlier batches. As soon as a job with another operation is waiting, no more items are admitted, so
that this job gets its turn.

The first batch of a streamed job has few of its items, so that the first results arrive early. The
native engine also reports drafts: the partial output of the first item without a result.

Jobs belong to the event loop. The thread delivers its results there.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from transept.api.texts import Draft
from transept.apps.serve.operations import ALL, GROWTH, Item, ItemFeed, Job, Operation, Result
from transept.apps.serve.settings import ServerSettings
from transept.errors import TranseptError

UNMEASURED = 0.0005
"""Initial estimate of seconds per token of a hypothesis. It is pessimistic, so that the first batch
is small and measured soon."""
CLIENTS_PER_WAIT = 8
"""A batch waits longer for the next job, by `gather_ms` per this many clients."""
MOST_WAITS = 16
"""The longest wait for jobs, in multiples of `gather_ms`."""


class OverloadedError(TranseptError):
    """The queue is full, or there are too many streams."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"the server is busy; try again in {self.seconds} s")


class StoppingError(TranseptError):
    """The server stopped before this request was done."""

    def __init__(self) -> None:
        super().__init__("the server stopped before this request was done; try again later")


class _AbandonedError(Exception):
    """All clients of this batch have disconnected."""


_Operation = Operation[Any, Any]
_Job = Job[Any, Any]
_Item = tuple[_Job, int]
"""A job, and the index of one of its items."""


class _Batch:
    """Items that are decoded together: the initial items and those admitted later."""

    def __init__(self, operation: _Operation) -> None:
        self.operation = operation
        self.running: dict[int, _Item] = {}
        """The unfinished items by number, numbered in the order of admission."""
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
        """The number of tokens in all unfinished items."""
        return sum(job.sizes[index] for job, index in self.running.values())

    def measure(self) -> None:
        """Start a new measurement of the decoding time."""
        self.begun = time.perf_counter()
        self.sizes_done: list[int] = []
        """The number of tokens of each item finished since then."""
        self._end = self.n_admitted if self.running else 0

    @property
    def is_measured(self) -> bool:
        """Whether all items that were in the batch when the measurement started are done.

        A batch that is continuously refilled never ends, so its time is measured this way.
        """
        is_over = next(iter(self.running), self.n_admitted) >= self._end
        return is_over and bool(self.sizes_done)


class Batcher:
    """The queue of jobs, and the thread that decodes them."""

    def __init__(self, settings: ServerSettings, decoded: Callable[[int, float], None]) -> None:
        self._settings = settings
        self._decoded = decoded
        """Called with the number of items and the seconds of each batch."""
        self._jobs: deque[_Job] = deque()
        self._unanswered: set[_Job] = set()
        """The jobs whose clients are still waiting."""
        self.waiting = 0
        """The number of queued items of all jobs."""
        self._stopping = False
        """Whether new requests are refused and the thread is to end."""
        self._expected = 1
        """The number of jobs that may wait at a time, as far as known."""
        self._changed = threading.Condition()
        """Guards the jobs and the number of queued items. Notified on new work."""
        self._seconds_per_item = 0.05
        self._seconds_per_token: dict[type, float] = {}
        """The decoding time per token of a hypothesis, for each type of operation."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="decoding", daemon=True)

    def start(self) -> None:
        """Start the thread. Results are delivered on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """Stop the thread after the running batch."""
        self._close()
        await asyncio.to_thread(self._thread.join)

    def fail_all(self) -> None:
        """Reject new requests and fail all waiting ones, because the grace period is over."""
        self._close()
        for job in self._unanswered:
            job.fail(StoppingError())

    def _close(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive() and not self._stopping

    @property
    def streaming(self) -> int:
        """The number of streams that a client is reading."""
        return sum(job.share is not None for job in self._unanswered)

    def submit(
        self, operation: Operation[Item, Result], items: Sequence[Item], streamed: bool = False
    ) -> Job[Item, Result]:
        """Queue a job.

        Raises `OverloadedError` if the queue is full, or if there are too many streams.

        Args:
            operation: The work.
            items: The items of the request.
            streamed: Whether the client gets results and drafts before all are complete.
        """
        if self._stopping:
            raise StoppingError
        if streamed and self.streaming >= self._settings.stream_limit:
            raise OverloadedError(1)
        with self._changed:
            if self.waiting + len(items) > self._settings.queue_limit:
                raise OverloadedError(self.waiting * self._seconds_per_item)
            job = Job(operation, items, self._remove, streamed)
            self._unanswered.add(job)
            if items:
                self._jobs.append(job)
                self.waiting += len(items)
                self._changed.notify()
        return job

    def _remove(self, job: _Job) -> None:
        """Remove a job that was answered or whose client disconnected from the queue."""
        self._unanswered.discard(job)
        with self._changed:
            self.waiting -= len(job.queued)
            job.queued.clear()
            if job in self._jobs:
                self._jobs.remove(job)

    # The methods below run in the decoding thread.

    def _work(self) -> None:
        while not self._stopping:
            operation = self._wait()
            if operation is not None:
                self._decode(_Batch(operation))

    def _wait(self) -> _Operation | None:
        """Wait for work and return the next operation, or None if the thread must stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._stopping)
            self._gather()
            return self._jobs[0].operation if self._jobs and not self._stopping else None

    def _gather(self) -> None:
        """Wait for the jobs that may come. Stop waiting if none comes for a while."""
        gather = self._settings.gather_ms / 1000
        # The event loop first sends the answers of the last batch, which takes a while per client.
        patience = gather * min(1 + self._expected / CLIENTS_PER_WAIT, MOST_WAITS)
        end = time.perf_counter() + gather * MOST_WAITS
        while (n := len(self._jobs)) < self._expected and time.perf_counter() < end:
            if self.waiting >= self._settings.batch_sentences or self._stopping:
                return
            more = self._changed.wait_for(lambda: len(self._jobs) > n or self._stopping, patience)
            if not more:
                return

    def _decode(self, batch: _Batch) -> None:
        """Decode a batch, admitting new items."""
        feed: ItemFeed[Any] = ItemFeed(partial(self._admit, batch), partial(self._draft, batch))
        try:
            for found in batch.operation.run(feed):
                self._deliver(batch, found)
                if batch.is_measured:
                    size = sum(batch.sizes_done)
                    self._update_speed(batch.operation, self._measured(batch) / size)
        except Exception as error:
            if not batch.n_admitted:  # failed before it took any item: the queued ones must fail
                feed(ALL)
            for number, result in _one_by_one(batch, error):
                self._deliver(batch, [(number, result)])
            self._measured(batch)

    def _measured(self, batch: _Batch) -> float:
        """End a measurement, start the next, and return the measured seconds."""
        n_done, seconds = len(batch.sizes_done), time.perf_counter() - batch.begun
        if n_done:
            # A moving average: Retry-After of a rejected request reflects the current speed.
            self._seconds_per_item += 0.2 * (seconds / n_done - self._seconds_per_item)
            self._decoded(n_done, seconds)
            batch.measure()
        return seconds

    def _update_speed(self, operation: _Operation, seconds_per_token: float) -> None:
        usual, now = self._speed(operation), seconds_per_token / operation.beam_size
        # One measurement counts as at most four times the average, in case the machine was
        # suspended during a batch.
        self._seconds_per_token[type(operation)] = usual + 0.5 * (min(now, 4 * usual) - usual)

    def _speed(self, operation: _Operation) -> float:
        return self._seconds_per_token.get(type(operation), UNMEASURED)

    def _deliver(self, batch: _Batch, found: Iterable[tuple[int, Any]]) -> None:
        done = [(*batch.finish(number), result) for number, result in found]
        # The clients that are answered now may send their next jobs.
        answered = {job for job, *_ in done if not job.queued and not job.cancelled}
        running = {job for job, _ in batch.running.values()}
        self._expected = len(answered | running) + len(self._jobs)

        def set_results() -> None:
            for job, index, result in done:
                if isinstance(result, Exception):
                    job.fail(result)
                else:
                    job.deliver(index, result)

        self._on_loop(set_results)

    def _draft(self, batch: _Batch, number: int, draft: Callable[[], Draft]) -> None:
        """Deliver a draft if a client waits for it."""
        job, index = batch.running[number]
        if job.wants_draft(index):
            self._on_loop(job.deliver_draft, index, draft())

    def _admit(self, batch: _Batch, n: int) -> list[Any]:
        """Admit at most n items to a batch. Admit none while another operation is waiting.

        This is the feed of the search. It raises an exception if all clients have disconnected.
        """
        items = batch.running.values()
        if items and all(job.cancelled for job, _ in items):
            raise _AbandonedError
        with self._changed:
            if not n or not self._jobs or self._stopping:
                return []
            if batch.n_admitted and self._jobs[0].operation != batch.operation:
                return []
            # The batch is finished. A new batch may first wait for more items.
            if batch.n_admitted and not batch.running:
                return []
            taken = self._choose(batch, n)
        batch.add(taken)
        return [job.items[index] for job, index in taken]

    def _choose(self, batch: _Batch, n: int) -> list[_Item]:
        """Take items from the queue, round robin over the jobs with the batch's operation."""
        operation, taken = batch.operation, list[_Item]()
        turns = deque(job for job in self._jobs if job.operation == operation)
        left = {job: job.share or ALL for job in turns}
        later: list[_Job] = []
        # Jobs with another operation are first in the next batch.
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
            left[job] -= 1
            if job.queued:
                (turns if left[job] else later).append(job)
        for job in {job for job, _ in taken}:
            job.share = job.share and GROWTH * job.share
        self.waiting -= len(taken)
        self._jobs = deque([*others, *turns, *later])
        return taken

    def room(self, beam_size: int) -> int:
        """The maximum number of items of a batch with this beam. A wider beam allows fewer."""
        most = self._settings.batch_sentences
        return max(1, min(most, most * self._settings.beam_size // beam_size))

    def _on_loop(self, function: Any, *arguments: Any) -> None:
        """Call a function on the event loop."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(function, *arguments)


def _one_by_one(batch: _Batch, error: Exception) -> Iterator[tuple[int, Any]]:
    """Decode the items of a failed batch one by one, so that one bad item fails no other."""
    is_final = isinstance(error, _AbandonedError) or len(batch.running) == 1
    for number, (job, index) in [*batch.running.items()]:
        yield number, error if is_final else _decode_alone(job, index)


def _decode_alone(job: _Job, index: int) -> Any:
    """Decode one item. Return its result or the exception."""
    left = [job.items[index]]

    def take(n: int) -> list[Any]:
        if job.cancelled:
            raise _AbandonedError
        return [left.pop()] if n and left else []

    try:
        ((_, result),) = [pair for found in job.operation.run(ItemFeed(take)) for pair in found]
    except Exception as error:
        return error
    return result
