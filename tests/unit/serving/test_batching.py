"""Batches and streams, through one thread."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from transept.serving.batching import Batcher, Capacity, OverloadedError
from transept.serving.jobs import Stream
from transept.serving.metrics import Metrics

CAPACITY = Capacity(batch=4, beam_size=4, queue=8, streams=2, gather_seconds=0, batch_seconds=5)


@dataclass(frozen=True)
class Sleep:
    """Takes time, and gives back what it was given."""

    seconds: float
    beam_size: int = 4

    def size(self, item: int) -> int:
        return 1

    def run(self, items: Sequence[int], watch: Callable[[], None]) -> list[int]:
        time.sleep(self.seconds)
        return list(items)


def steps(n: int, seconds: float = 0.001) -> Generator[int, None, None]:
    for number in range(n):
        time.sleep(seconds)
        yield number


async def newest(stream: Stream[int]) -> int:
    """The last that a stream gives."""
    last = -1
    async for number in stream:
        assert number > last
        last = number
    return last


def with_batcher(test: Callable[[Batcher], object]) -> None:
    async def run() -> None:
        batcher = Batcher(CAPACITY, Metrics())
        batcher.start()
        await asyncio.wait_for(test(batcher), 20)  # type: ignore[arg-type]
        await batcher.stop()

    asyncio.run(run())


def test_streams_and_batches_take_turns() -> None:
    async def test(batcher: Batcher) -> None:
        streams = [batcher.open(steps(10_000)) for _ in range(2)]
        for number in range(20):
            assert await batcher.submit(Sleep(0.01), [number]).results() == [number]
        grown = []
        for stream in streams:
            async for number in stream:
                grown.append(number)
                break
            stream.cancel()
        assert min(grown) >= 20, "each batch leaves some time to each stream"
        assert max(grown) < 400, "and no stream takes it all"

    with_batcher(test)


def test_a_stream_ends_by_itself_or_when_it_is_told() -> None:
    async def test(batcher: Batcher) -> None:
        assert await newest(batcher.open(steps(50))) == 49
        late = batcher.open(steps(10_000))
        asyncio.get_running_loop().call_later(0.05, late.end, TimeoutError())
        with pytest.raises(TimeoutError):
            await newest(late)
        assert batcher.streaming == 0

    with_batcher(test)


def test_a_stream_that_nobody_reads_is_closed() -> None:
    closed = threading.Event()

    def endless() -> Generator[int, None, None]:
        try:
            while True:
                yield 0
                time.sleep(0.001)
        finally:
            closed.set()

    async def test(batcher: Batcher) -> None:
        first, _ = batcher.open(endless()), batcher.open(steps(10_000))
        with pytest.raises(OverloadedError):
            batcher.open(steps(1))
        await anext(aiter(first))
        first.cancel()
        assert batcher.streaming == 1
        assert await asyncio.to_thread(closed.wait, 5)

    with_batcher(test)


def test_one_stream_too_many_is_told_when_the_oldest_may_end() -> None:
    def told(batcher: Batcher) -> int:
        with pytest.raises(OverloadedError) as refused:
            batcher.open(steps(1))
        assert str(refused.value).endswith(f"try again in {refused.value.seconds} s")
        return refused.value.seconds

    async def test(batcher: Batcher) -> None:
        assert await newest(batcher.open(steps(1, seconds=2.5))) == 0
        await asyncio.sleep(0.05)  # it is counted once it has ended
        for _ in range(2):
            batcher.open(steps(10_000))
        assert told(batcher) == 2
        await asyncio.sleep(0.5)
        assert told(batcher) == 1

    with_batcher(test)


def test_a_batch_takes_about_as_long_as_it_may() -> None:
    """Whoever comes meanwhile waits for its end."""

    @dataclass(frozen=True)
    class Slow:
        begun: list[list[float]]
        beam_size: int = 1

        def __hash__(self) -> int:
            return 0

        def size(self, item: float) -> int:
            return round(1000 * item)

        def run(self, items: Sequence[float], watch: Callable[[], None]) -> list[float]:
            self.begun.append([*items])
            time.sleep(sum(items))
            return list(items)

    async def run() -> None:
        batcher = Batcher(replace(CAPACITY, batch=100, queue=100, batch_seconds=0.1), Metrics())
        batcher.start()
        ask = Slow([])
        await batcher.submit(ask, [0.02] * 40).results()
        # One that takes too long is a batch by itself; the last waits for no other.
        long, short = batcher.submit(ask, [0.2] * 2), batcher.submit(ask, [0.01])
        await short.results()
        await long.results()
        await batcher.stop()
        *first, one, two, three = ask.begun
        assert first[0] == [0.02] * 10, "rather slow, until it is known"
        assert all(3 <= len(batch) <= 6 for batch in first[4:-1])
        assert [one, two, three] == [[0.2], [0.01], [0.2]]

    asyncio.run(run())


def test_a_wider_beam_makes_smaller_batches() -> None:
    assert [CAPACITY.room(beam) for beam in (1, 4, 5, 8, 21)] == [4, 4, 3, 2, 1]


# --- who comes while a batch is under way ----------------------------------------------------


@dataclass(frozen=True)
class Steps(Sleep):
    """Lets items in, four at a time; each takes as many steps as it says, and 13 is unlucky."""

    name: str = ""

    def run(self, items: Sequence[int], watch: Callable[[], None]) -> list[int]:
        if 13 in items:
            raise ValueError("13")
        return list(items)

    def run_feed(self, feed: Callable[[int], Sequence[int]]) -> Iterator[list[tuple[int, int]]]:
        items: list[int] = []
        left: dict[int, int] = {}
        while True:
            come = feed(4 - len(left))
            left |= dict(enumerate(come, len(items)))
            items += come
            if 13 in come:
                raise ValueError("13")
            if not left:
                return
            time.sleep(self.seconds)
            left = {number: steps - 1 for number, steps in left.items()}
            done = [number for number, steps in left.items() if not steps]
            for number in done:
                del left[number]
            yield [(number, items[number]) for number in done]


STEP = Steps(0.005)


def test_a_result_is_delivered_when_it_is_there_and_who_comes_is_let_in() -> None:
    async def test(batcher: Batcher) -> None:
        long = batcher.submit(STEP, [1000])
        assert await batcher.submit(STEP, [3, 1]).results() == [3, 1]
        for _ in range(3):
            assert await batcher.submit(STEP, [2]).results() == [2]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(long.results(), 0.01)
        long.cancel()  # and so the batch is ended: nobody waits for any of it
        start = time.perf_counter()
        assert await batcher.submit(STEP, [1]).results() == [1]
        assert time.perf_counter() - start < 2

    with_batcher(test)


async def without_end(batcher: Batcher) -> None:
    """Someone who always has a next item."""
    while True:
        await batcher.submit(STEP, [2]).results()


def test_who_asks_for_something_else_has_a_turn_though_others_keep_coming() -> None:
    async def test(batcher: Batcher) -> None:
        crowd = [asyncio.create_task(without_end(batcher)) for _ in range(6)]
        await asyncio.sleep(0.1)
        for other in (Steps(0.001, name="other"), Sleep(0.001)):
            for number in range(3):
                waiting = batcher.submit(other, [1 + number]).results()
                assert await asyncio.wait_for(waiting, 2) == [1 + number]
        stream = batcher.open(steps(5))
        assert await asyncio.wait_for(newest(stream), 2) == 4
        for task in crowd:
            assert not task.done()
            task.cancel()

    with_batcher(test)


def test_one_who_fails_spoils_none() -> None:
    async def test(batcher: Batcher) -> None:
        good, bad = batcher.submit(STEP, [50]), batcher.submit(STEP, [13])
        more = batcher.submit(STEP, [7, 8])
        with pytest.raises(ValueError, match="13"):
            await bad.results()
        assert await good.results() + await more.results() == [50, 7, 8]

    with_batcher(test)


def test_what_fails_before_it_takes_anything_fails_for_who_waits() -> None:
    class Broken(Steps):
        def run(self, items: Sequence[int], watch: Callable[[], None]) -> list[int]:
            raise ValueError("no")

        def run_feed(self, feed: Callable[[int], Sequence[int]]) -> Iterator[list[tuple[int, int]]]:
            raise ValueError("no")

    async def test(batcher: Batcher) -> None:
        for items in ([1], [1, 2]):
            with pytest.raises(ValueError, match="no"):
                await batcher.submit(Broken(0.0), items).results()

    with_batcher(test)


def test_what_is_done_is_counted_while_it_goes_on() -> None:
    counted: list[tuple[int, float]] = []

    class Counting(Metrics):
        def batch_done(self, n_items: int, seconds: float) -> None:
            counted.append((n_items, seconds))

    async def run() -> None:
        batcher = Batcher(CAPACITY, Counting())
        batcher.start()
        start = time.perf_counter()
        jobs = [batcher.submit(STEP, [20, 4]) for _ in range(2)]
        await asyncio.gather(*(job.results() for job in jobs))
        for _ in range(10):
            two = [batcher.submit(STEP, [5]), batcher.submit(STEP, [8])]
            await two[0].results()
            two[0] = batcher.submit(STEP, [5])
            await asyncio.gather(*(job.results() for job in two))
        await batcher.stop()
        assert counted[0][0] == 4, "who was there at the beginning is a batch"
        assert sum(n_items for n_items, _ in counted) == 4 + 30
        assert 0.7 < sum(seconds for _, seconds in counted) / (time.perf_counter() - start) < 1

    asyncio.run(run())


def test_when_it_is_stopped_nobody_is_let_in() -> None:
    async def run() -> None:
        batcher = Batcher(CAPACITY, Metrics())
        batcher.start()
        begun = batcher.submit(STEP, [20])
        await asyncio.sleep(0.05)
        stopping = asyncio.create_task(batcher.stop())
        await asyncio.sleep(0)
        late = batcher.submit(STEP, [1])
        await stopping
        assert await begun.results() == [20]
        assert batcher.waiting == 1
        late.cancel()

    asyncio.run(run())
