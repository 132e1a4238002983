"""Who is named when all stand still, and who hears of it."""

import threading
import time
from datetime import timedelta
from typing import Any

from torch._C._distributed_c10d import TCPStore

from transept.errors import RankError
from transept.runtime.watch import LEAVING, Board, Pulse, Watchdog

PATIENCE = 0.8


def watch_three(*phases: str, silent: int | None = None) -> list[RankError]:
    """Three ranks that do not move; what the first of them is told."""
    store: Any = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20))
    ranks = [Board(store.clone(), rank, 3) for rank in range(3)]
    pulses = [Pulse(step=7, phase=phase) for phase in phases]
    for rank, pulse in zip(ranks, pulses, strict=True):
        rank.beat(pulse)
    told: list[RankError] = []
    heard = threading.Event()

    def end(error: RankError) -> None:
        told.append(error)
        heard.set()

    with Watchdog(pulses[0], ranks[0], PATIENCE, end):
        pulses[0].phase = phases[0]
        deadline = time.monotonic() + 10
        while not heard.wait(0.05) and time.monotonic() < deadline:
            for number in (1, 2):
                if number != silent:
                    ranks[number].beat(pulses[number])
    assert ranks[2].published() is not None
    assert str(ranks[2].published()) == str(told[0])
    return told


def test_a_rank_that_no_longer_answers_is_named() -> None:
    waiting = ("reducing gradients",) * 3
    [error, *_] = watch_three(*waiting, silent=2)
    assert str(error).startswith("rank 2 on ")
    assert "(step 7, reducing gradients) does not answer" in str(error)


def test_else_the_one_that_is_furthest_behind() -> None:
    [error, *_] = watch_three("reducing gradients", "reading data", "reducing gradients")
    assert str(error).startswith("rank 1 on ")
    assert "(step 7, reading data) has not moved for 0.8 s" in str(error)


def test_where_none_is_behind_all_are_listed() -> None:
    [error, *_] = watch_three("saving", "saving", "saving")
    assert str(error).startswith("no rank has moved for 0.8 s")
    assert all(f"rank {rank} on " in str(error) for rank in range(3))


def test_the_first_cause_is_everyones() -> None:
    store: Any = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20))
    first, second = (Board(store.clone(), rank, 2) for rank in range(2))
    assert first.published() is None
    assert str(first.publish("the disk is full", 4)) == "the disk is full"
    later = second.publish("something that follows from it", 1)
    assert (str(later), later.exit_code) == ("the disk is full", 4)
    assert str(second.first_cause()) == "the disk is full"
    assert (first.spoke, second.spoke) == (True, False)


def test_whoever_keeps_the_store_leaves_when_all_know_why() -> None:
    store: Any = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20))
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
    leaving.join(LEAVING / 2)
    assert not leaving.is_alive()
    del keeper, store
    assert [str(other.first_cause()) for other in others] == ["the disk is full"] * 2


def test_rank_that_rests_is_not_ended_until_it_works_again() -> None:
    pulse = Pulse(since=-1e9)
    pulse.rest()
    assert time.monotonic() - pulse.since < 0
    pulse.at("computing")
    assert time.monotonic() - pulse.since >= 0


def test_who_moves_is_left_alone() -> None:
    store: Any = TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=20))
    pulse = Pulse()
    told: list[RankError] = []
    with Watchdog(pulse, Board(store.clone(), 0, 1), PATIENCE, told.append):
        for _ in range(12):
            pulse.at("computing")
            time.sleep(PATIENCE / 8)
    assert told == []
