"""Which rank is named when none makes progress, and how others learn of it."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from torch._C._distributed_c10d import TCPStore

from transept.errors import RankError
from transept.runtime import watch
from transept.runtime.watch import Board, Pulse, Watchdog

PATIENCE = 8.0


class Clock:
    """A clock that only moves when the test sets it."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the watchdog."""
    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    return clock


def common_store() -> Any:
    return TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=120))


def watch_three(clock: Clock, *phases: str, silent: int | None = None) -> RankError:
    """Let three ranks make no progress; return the error that the first one reports."""
    store = common_store()
    ranks = [Board(store.clone(), rank, 3) for rank in range(3)]
    pulses = [Pulse(step=7, phase=phase) for phase in phases]
    reported: list[RankError] = []
    watchdog = Watchdog(pulses[0], ranks[0], PATIENCE, reported.append)
    pulses[0].at(phases[0])
    began = clock.now
    while clock.now < began + PATIENCE:
        assert reported == []
        clock.now += PATIENCE / 16
        for rank, pulse in zip(ranks, pulses, strict=True):
            if rank.rank != silent or clock.now < began + PATIENCE / 2:
                rank.beat(pulse)
        watchdog._check_ranks()
    [error] = reported
    assert str(ranks[2].published()) == str(error)
    return error


def test_watchdog_names_a_silent_rank(clock: Clock) -> None:
    waiting = ("reducing gradients",) * 3
    error = watch_three(clock, *waiting, silent=2)
    assert str(error).startswith("rank 2 on ")
    assert "(step 7, reducing gradients) does not respond" in str(error)


def test_watchdog_names_the_rank_furthest_behind(clock: Clock) -> None:
    error = watch_three(clock, "reducing gradients", "reading data", "reducing gradients")
    assert str(error).startswith("rank 1 on ")
    assert "(step 7, reading data) has made no progress for 8 s" in str(error)


def test_watchdog_lists_all_ranks_if_none_is_behind(clock: Clock) -> None:
    error = watch_three(clock, "saving", "saving", "saving")
    assert str(error).startswith("no rank has made progress for 8 s")
    assert all(f"rank {rank} on " in str(error) for rank in range(3))


def test_first_published_cause_is_shared_by_all_ranks() -> None:
    store = common_store()
    first, second = (Board(store.clone(), rank, 2) for rank in range(2))
    assert first.published() is None
    assert str(first.publish("the disk is full", 4)) == "the disk is full"
    later = second.publish("something that follows from it", 1)
    assert (str(later), later.exit_code) == ("the disk is full", 4)
    assert str(second.first_cause()) == "the disk is full"
    assert (first.published_first, second.published_first) == (True, False)


def test_store_host_leaves_after_all_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LEAVING", 600.0)
    store = common_store()
    keeper = Board(store.clone(), 0, 3, keeps_store=True)
    others = [Board(store.clone(), rank, 3) for rank in (1, 2)]
    keeper.publish("the disk is full", 4)
    leaving = threading.Thread(target=keeper.leave)
    leaving.start()
    assert others[0].published() is not None
    assert others[0].published() is not None  # which is not counted twice
    leaving.join(0.3)
    assert leaving.is_alive()
    assert others[1].published() is not None
    leaving.join(120)
    assert not leaving.is_alive()
    del keeper, store
    assert [str(other.first_cause()) for other in others] == ["the disk is full"] * 2


def test_rank_that_rests_is_not_ended_until_it_works_again(clock: Clock) -> None:
    pulse = Pulse(since=-1e9)
    pulse.rest()
    assert pulse.since > clock.now
    pulse.at("computing")
    assert pulse.since == clock.now


def test_watchdog_ignores_ranks_that_make_progress(clock: Clock) -> None:
    pulse, board = Pulse(), Board(common_store(), 0, 1)
    reported: list[RankError] = []
    watchdog = Watchdog(pulse, board, PATIENCE, reported.append)
    for _ in range(12):
        pulse.at("computing")
        clock.now += 0.9 * PATIENCE
        board.beat(pulse)
        watchdog._check_ranks()
    assert reported == []
    clock.now += 0.2 * PATIENCE
    watchdog._check_ranks()
    assert len(reported) == 1


def test_watchdog_thread_runs_within_the_block() -> None:
    reported: list[RankError] = []
    heard = threading.Event()

    def end(error: RankError) -> None:
        reported.append(error)
        heard.set()

    with Watchdog(Pulse(), Board(common_store(), 0, 1), 0.2, end):
        assert heard.wait(120)
    assert str(reported[0]).startswith("no rank has made progress for 0.2 s: rank 0 on ")
