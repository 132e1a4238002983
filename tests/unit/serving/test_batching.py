"""Batches and streams, through one thread."""

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Sequence
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
            stream.give_up()
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
        first.give_up()
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
