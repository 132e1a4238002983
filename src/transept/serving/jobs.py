"""What a request waits for: results of its items, or something that grows while it is watched.

Both live on the event loop, and hear there of what the decoding thread has done for them.
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


class Ask(Protocol[In, Out]):
    """What is asked for; equal ones are answered together."""

    def __hash__(self) -> int: ...

    @property
    def beam_size(self) -> int:
        """Hypotheses of each item: what it costs."""

    def size(self, item: In) -> int:
        """Tokens of an item, about: what it costs too."""

    def run(self, items: Sequence[In], watch: Callable[[], None]) -> list[Out]:
        """A result for each item. `watch`, called now and then, raises to end it early."""


@runtime_checkable
class OpenAsk(Ask[In, Out], Protocol[In, Out]):
    """An ask that lets items in while others are under way."""

    def run_feed(self, feed: Callable[[int], Sequence[Any]]) -> Iterator[Sequence[tuple[int, Out]]]:
        """Results as soon as they are there, with the items' numbers in the order they came in.

        Args:
            feed: Gives at most so many items; none where none waits now. It is asked now and then,
                if only for 0, and raises to end it early.
        """


AnyAsk = Ask[Any, Any]


class Job(Generic[Item, Result]):
    """Items of one request, and their results as they come."""

    def __init__(
        self, ask: Ask[Item, Result], items: Sequence[Item], drop: "Callable[[AnyJob], None]"
    ) -> None:
        self.ask, self.items = ask, items
        self.sizes = [*map(ask.size, items)]
        self.untaken = deque(range(len(items)))
        self.given_up = False
        self._drop = drop
        loop = asyncio.get_running_loop()
        self._results: list[asyncio.Future[Result]] = [loop.create_future() for _ in items]

    async def results(self) -> list[Result]:
        """All results."""
        return [await result for result in self._results]

    def give_up(self) -> None:
        """Nobody waits any more: what has not begun never will."""
        self.given_up = True
        self._drop(self)
        for result in self._results:
            if not result.cancel() and not result.cancelled():
                result.exception()  # it was seen: not asked for, but not forgotten either

    def fail(self, reason: Exception) -> None:
        """What is not there yet will never be, for this reason."""
        for index in range(len(self.items)):
            self.deliver(index, reason)

    def deliver(self, index: int, result: Result | Exception) -> None:
        """Note the result of an item, if it is still wanted."""
        future = self._results[index]
        if future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


AnyJob = Job[Any, Any]


class Stream(Generic[Result]):
    """Something that grows step by step. Whoever reads slowly gets the newest, and misses some."""

    def __init__(self, steps: Generator[Result, None, None]) -> None:
        self.steps = steps
        """Run, and closed, by the decoding thread alone."""
        self.given_up = False
        self.begun = time.perf_counter()
        self._newest: Result | None = None
        self._end: Exception | None = None
        self._changed = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[Result]:
        """What it has grown to, as soon as it has; then its error, if it came to one."""
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

    def give_up(self) -> None:
        """Nobody reads any more: it takes no further step."""
        self.given_up = True

    def deliver(self, newest: Result) -> None:
        """Note what it has grown to."""
        self._newest = newest
        self._changed.set()

    def end(self, reason: Exception) -> None:
        """It grows no more; a `StopIteration` says that it is whole. The first reason counts."""
        self.given_up = True
        self._end = self._end or reason
        self._changed.set()


AnyStream = Stream[Any]
