"""Batches, through one thread.

No test measures time. A fake clock replaces the batcher's. It advances only when an
operation reports that it took some time.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from transept.api.texts import Draft
from transept.apps.serve import batching, operations
from transept.apps.serve.batching import Batcher, OverloadedError, StoppingError
from transept.apps.serve.operations import ALL
from transept.apps.serve.settings import ServerSettings

SETTINGS = ServerSettings(
    batch_sentences=4, sentence_limit=8, queue_limit=8, stream_limit=2, gather_ms=0, batch_seconds=5
)
PATIENCE = 120.0
"""Seconds after which a test that waits for an event fails. No result depends on it."""
TICK = 1 / 1024
"""Seconds that are added without rounding."""
FOREVER = 1 << 40
"""More steps than any test takes."""

Spend = Callable[[float], object]
Feed = Callable[[int], Sequence[int]]
Found = Iterator[list[tuple[int, int]]]


class Clock:
    """Replaces the module `time`."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(batching, "time", clock)
    return clock


@dataclass(frozen=True)
class Echo:
    """Returns its items unchanged."""

    name: str = ""
    spend: Spend = time.sleep
    seconds: float = TICK
    beam_size: int = 4

    def size(self, item: int) -> int:
        return 1

    def run(self, feed: Feed) -> Found:
        items = feed(ALL)
        self.spend(self.seconds)
        yield [*enumerate(items)]


@dataclass(frozen=True)
class Hold(Echo):
    """Keeps the thread busy until released."""

    begun: threading.Event = field(default_factory=threading.Event)
    let: threading.Event = field(default_factory=threading.Event)

    def run(self, feed: Feed) -> Found:
        items = feed(ALL)
        self.begun.set()
        assert self.let.wait(PATIENCE)
        yield [*enumerate(items)]


async def held(batcher: Batcher) -> threading.Event:
    """Keep the thread busy, so that jobs queue up until the event is set."""
    hold = Hold()
    batcher.submit(hold, [0])
    await happened(hold.begun)
    return hold.let


async def happened(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


def with_batcher(
    test: Callable[[Batcher], Awaitable[None]],
    settings: ServerSettings = SETTINGS,
    decoded: Callable[[int, float], None] = lambda n_items, seconds: None,
) -> None:
    async def run() -> None:
        batcher = Batcher(settings, decoded)
        batcher.start()
        try:
            await asyncio.wait_for(test(batcher), PATIENCE)
        finally:
            await batcher.stop()

    asyncio.run(run())


def test_streamed_job_gets_more_items_with_each_batch() -> None:
    begun: list[list[int]] = []

    @dataclass(frozen=True)
    class Listed(Echo):
        def run(self, feed: Feed) -> Found:
            items = feed(ALL)
            begun.append([*items])
            yield [*enumerate(items)]

    async def test(batcher: Batcher) -> None:
        let = await held(batcher)
        first = batcher.submit(Listed(), range(20), streamed=True)
        other = batcher.submit(Listed(), range(30, 33))
        let.set()
        seen = [first.n_ready async for _ in first.updates()]
        assert seen == sorted(seen)
        assert await first.results == [*range(20)]
        assert await other.results == [30, 31, 32]

    with_batcher(test, replace(SETTINGS, batch_sentences=100, queue_limit=100))
    assert [sorted(batch) for batch in begun] == [
        [0, 30, 31, 32], [*range(1, 5)], [*range(5, 20)]
    ]  # fmt: skip


def test_draft_is_delivered_only_for_the_first_item_of_a_stream_without_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Both items of the stream are in one batch, in which neither has a result yet.
    monkeypatch.setattr(operations, "FIRST_ITEMS", 2)
    asked: list[int] = []

    def draft(item: int) -> Draft:
        asked.append(item)
        return Draft(str(item), 0)

    @dataclass(frozen=True)
    class Drafted(Echo):
        def run(self, feed: Any) -> Found:
            items = feed(ALL)
            for number, item in enumerate(items):
                feed.draft(number, partial(draft, item))
            yield [*enumerate(items)]

    async def test(batcher: Batcher) -> None:
        let = await held(batcher)
        plain = batcher.submit(Drafted(), [7, 8])
        stream = batcher.submit(Drafted(), [1, 2], streamed=True)
        let.set()
        assert await stream.results + await plain.results == [1, 2, 7, 8]
        assert stream.draft == (0, Draft("1", 0))

    with_batcher(test)
    assert asked == [1]


def test_streams_beyond_the_limit_are_rejected() -> None:
    async def test(batcher: Batcher) -> None:
        nothing: list[int] = []
        first, second = (batcher.submit(Echo(), nothing, streamed=True) for _ in range(2))
        with pytest.raises(OverloadedError):
            batcher.submit(Echo(), [1], streamed=True)
        assert batcher.streaming == 2
        first.cancel()
        assert batcher.streaming == 1
        assert [_ async for _ in second.updates()] == []

    with_batcher(test)


def test_updates_raise_the_exception_of_a_job() -> None:
    async def test(batcher: Batcher) -> None:
        let = await held(batcher)
        late = batcher.submit(Echo(), [1], streamed=True)
        late.fail(TimeoutError())
        with pytest.raises(TimeoutError):
            await anext(late.updates())
        let.set()

    with_batcher(test)


def test_batch_size_follows_the_time_limit(clock: Clock) -> None:
    """Items that arrive during a batch wait for its end."""
    begun: list[list[float]] = []

    @dataclass(frozen=True)
    class Slow:
        beam_size: int = 1

        def size(self, item: float) -> int:
            return round(1000 * item)

        def run(self, feed: Callable[[int], Sequence[float]]) -> Iterator[list[tuple[int, float]]]:
            items = feed(ALL)
            begun.append([*items])
            clock.spend(sum(items))
            yield [*enumerate(items)]

    async def test(batcher: Batcher) -> None:
        await batcher.submit(Slow(), [0.02] * 40).results
        let = await held(batcher)
        # A long item is a batch by itself; the last does not wait for others.
        long, short = batcher.submit(Slow(), [0.2] * 2), batcher.submit(Slow(), [0.01])
        let.set()
        await short.results
        await long.results

    with_batcher(test, replace(SETTINGS, batch_sentences=100, queue_limit=100, batch_seconds=0.1))
    *first, one, two, three = begun
    assert first[0] == [0.02] * 10, "a slow guess, until it is measured"
    assert [len(batch) for batch in first[1:-1]] == [6, 5, 5, 5, 5]
    assert [one, two, three] == [[0.2], [0.01], [0.2]]


def test_batch_waits_for_the_clients_of_the_last_one_and_for_no_others() -> None:
    sizes: list[int] = []

    async def test(batcher: Batcher) -> None:
        await batcher.submit(Echo(), [1]).results
        await batcher.submit(Echo(), [2]).results
        hold = Hold()
        first = batcher.submit(hold, [0])
        await happened(hold.begun)
        other = batcher.submit(Echo(), [3])
        hold.let.set()
        await first.results
        # Two clients may send something at a time, so the batch waits for the first one's next.
        again = batcher.submit(Echo(), [4])
        assert [await other.results, await again.results] == [[3], [4]]

    def decoded(n_items: int, seconds: float) -> None:
        sizes.append(n_items)

    with_batcher(test, replace(SETTINGS, gather_ms=1e7), decoded)
    assert sizes == [1, 1, 1, 2]


def test_a_wider_beam_makes_smaller_batches() -> None:
    batcher = Batcher(SETTINGS, lambda n_items, seconds: None)
    assert [batcher.room(beam) for beam in (1, 4, 5, 8, 21)] == [4, 4, 3, 2, 1]


# --- admission to a running batch ------------------------------------------------------------


@dataclass(frozen=True)
class Steps(Echo):
    """Admits four items at a time. Item n takes n steps; item 13 fails."""

    runs: list[threading.Event] = field(default_factory=list, compare=False)
    """One for each batch, set at its end."""

    def run(self, feed: Feed) -> Found:
        ended = threading.Event()
        self.runs.append(ended)
        try:
            yield from self._found(feed)
        finally:
            ended.set()

    def _found(self, feed: Feed) -> Found:
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
            self.spend(self.seconds)
            left = {number: steps - 1 for number, steps in left.items()}
            done = [number for number, steps in left.items() if not steps]
            for number in done:
                del left[number]
            yield [(number, items[number]) for number in done]


STEP = Steps()


def test_items_are_admitted_to_a_running_batch_and_delivered_when_they_are_done() -> None:
    async def test(batcher: Batcher) -> None:
        step = Steps()
        long = batcher.submit(step, [FOREVER])
        assert await batcher.submit(step, [3, 1]).results == [3, 1]
        for _ in range(3):
            assert await batcher.submit(step, [2]).results == [2]
        assert [ended.is_set() for ended in step.runs] == [False]
        long.cancel()

    with_batcher(test)


def test_a_batch_ends_when_all_its_jobs_are_cancelled() -> None:
    async def test(batcher: Batcher) -> None:
        step = Steps()
        long = batcher.submit(step, [FOREVER])
        assert await batcher.submit(step, [1]).results == [1]
        long.cancel()
        await happened(step.runs[0])
        assert await batcher.submit(step, [1]).results == [1]
        assert len(step.runs) == 2

    with_batcher(test)


def test_waiting_operation_ends_refilling_of_the_batch() -> None:
    served = [asyncio.Event() for _ in range(6)]

    async def without_end(batcher: Batcher, was_served: asyncio.Event) -> None:
        """A client that always has a next item."""
        while True:
            await batcher.submit(STEP, [2]).results
            was_served.set()

    async def test(batcher: Batcher) -> None:
        crowd = [asyncio.create_task(without_end(batcher, one)) for one in served]
        for one in served:
            await one.wait()
        for other in (Steps(name="other"), Echo()):
            for number in range(3):
                assert await batcher.submit(other, [1 + number]).results == [1 + number]
        for task in crowd:
            assert not task.done()
            task.cancel()

    with_batcher(test)


def test_failing_item_does_not_fail_others() -> None:
    async def test(batcher: Batcher) -> None:
        good, bad = batcher.submit(STEP, [50]), batcher.submit(STEP, [13])
        more = batcher.submit(STEP, [7, 8])
        with pytest.raises(ValueError, match="13"):
            await bad.results
        assert await good.results + await more.results == [50, 7, 8]

    with_batcher(test)


def test_failure_before_first_item_fails_queued_jobs() -> None:
    class Broken(Steps):
        def run(self, feed: Feed) -> Found:
            raise ValueError("no")

    async def test(batcher: Batcher) -> None:
        for items in ([1], [1, 2]):
            with pytest.raises(ValueError, match="no"):
                await batcher.submit(Broken(), items).results

    with_batcher(test)


def test_items_and_seconds_are_counted_while_a_batch_runs(clock: Clock) -> None:
    counted: list[tuple[int, float]] = []

    async def test(batcher: Batcher) -> None:
        step = Steps(spend=clock.spend)

        def submit(*items: int) -> Any:
            return batcher.submit(step, items).results

        let = await held(batcher)
        both = asyncio.gather(submit(20, 4), submit(20, 4))
        let.set()
        await both
        for _ in range(10):
            longer = asyncio.ensure_future(submit(8))
            await submit(5)
            await submit(5)
            await longer

    with_batcher(test, decoded=lambda n_items, seconds: counted.append((n_items, seconds)))
    hold, first, *_ = counted
    assert (hold, first) == ((1, 0.0), (4, 20 * TICK))
    assert sum(n_items for n_items, _ in counted) == 1 + 4 + 30
    assert sum(seconds for _, seconds in counted) == clock.now


def test_stopped_batcher_admits_no_items() -> None:
    begun, let = threading.Event(), threading.Event()

    def wait(seconds: float) -> None:
        begun.set()
        assert let.wait(PATIENCE)

    async def run() -> None:
        batcher = Batcher(SETTINGS, lambda n_items, seconds: None)
        batcher.start()
        step = Steps(spend=wait)
        first = batcher.submit(step, [20])
        await happened(begun)
        stopping = asyncio.create_task(batcher.stop())
        await asyncio.sleep(0)  # it begins to stop
        with pytest.raises(StoppingError):
            batcher.submit(step, [1])
        let.set()
        await stopping
        assert await first.results == [20]

    asyncio.run(run())
