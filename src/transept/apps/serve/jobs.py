"""What a request waits for: a job, which is results of its items, or a stream of drafts.

Both belong to the event loop. The decoding thread delivers its results to them there.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

Item = TypeVar("Item")
Result = TypeVar("Result")
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out")


class Operation(Protocol[In, Out]):
    """What to do with the items of a request: which model does it, and with which options.

    Items of equal operations may be decoded in one batch.
    """

    def __hash__(self) -> int: ...

    @property
    def beam_size(self) -> int:
        """The hypotheses of each item, by which the time that it takes is estimated."""

    def size(self, item: In) -> int:
        """Roughly the tokens of an item, by which the time that it takes is estimated too."""

    def run(self, items: Sequence[In], watch: Callable[[], None]) -> list[Out]:
        """The result of each item.

        Args:
            items: The items of one batch.
            watch: To be called now and then. It raises an exception to stop the work.
        """


@runtime_checkable
class ContinuousOperation(Operation[In, Out], Protocol[In, Out]):
    """An operation that can admit items while it works on others (continuous batching)."""

    def run_feed(self, feed: Callable[[int], Sequence[Any]]) -> Iterator[Sequence[tuple[int, Out]]]:
        """Results as soon as they are known, each with the number of its item.

        Items are numbered from 0 in the order in which the feed gave them.

        Args:
            feed: Gives at most so many items, and none if none waits now. It is to be called now
                and then, even with 0, and raises an exception to stop the work.
        """


AnyOperation = Operation[Any, Any]


class Job(Generic[Item, Result]):
    """The items of one request, and their results as they come."""

    def __init__(
        self,
        operation: Operation[Item, Result],
        items: Sequence[Item],
        remove: "Callable[[AnyJob], None]",
    ) -> None:
        """Make a job.

        Args:
            operation: What to do with the items.
            items: The items.
            remove: Takes this job out of the queue.
        """
        self.operation, self.items = operation, items
        self.sizes = [*map(operation.size, items)]
        self.queued = deque(range(len(items)))
        """The indices of the items that no batch has admitted."""
        self.cancelled = False
        self._remove = remove
        loop = asyncio.get_running_loop()
        self._results: list[asyncio.Future[Result]] = [loop.create_future() for _ in items]

    async def results(self) -> list[Result]:
        """The results of all items, when all are there."""
        return [await result for result in self._results]

    def cancel(self) -> None:
        """The client waits no more: items that are still in the queue are never decoded."""
        self.cancelled = True
        self._remove(self)
        for result in self._results:
            if not result.cancel() and not result.cancelled():
                result.exception()  # asyncio logs an exception that nobody has looked at

    def fail(self, reason: Exception) -> None:
        """Fail all items that have no result yet, for this reason."""
        for index in range(len(self.items)):
            self.deliver(index, reason)

    def deliver(self, index: int, result: Result | Exception) -> None:
        """Set the result of an item, unless the item was cancelled or has failed."""
        future = self._results[index]
        if future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


AnyJob = Job[Any, Any]


class Stream(Generic[Result]):
    """Results that replace each other step by step, such as the drafts of a translation.

    A client that reads slowly misses some of them, but always gets the newest.
    """

    def __init__(self, steps: Generator[Result, None, None]) -> None:
        self.steps = steps
        """Only the decoding thread runs and closes this generator."""
        self.cancelled = False
        """Whether it takes no further step."""
        self.begun = time.perf_counter()
        self._newest: Result | None = None
        self._end: Exception | None = None
        self._changed = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[Result]:
        """The newest result whenever there is a new one; at the end its exception, if any."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            newest, self._newest = self._newest, None
            if newest is not None:
                yield newest
            elif isinstance(self._end, StopIteration):
                return
            elif self._end is not None:
                raise self._end
            if self._end is not None:
                self._changed.set()

    def cancel(self) -> None:
        """The client reads no more: take no further step."""
        self.cancelled = True

    def deliver(self, newest: Result) -> None:
        """Replace the newest result."""
        self._newest = newest
        self._changed.set()

    def end(self, reason: Exception) -> None:
        """End the stream for this reason; `StopIteration` means that it is complete.

        Of several reasons, the first counts.
        """
        self.cancelled = True
        self._end = self._end or reason
        self._changed.set()


AnyStream = Stream[Any]
