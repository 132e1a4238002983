"""Ranks meet under a unique name and ignore what an earlier start left in the store."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from torch._C._distributed_c10d import HashStore, TCPStore

from transept.errors import RankError
from transept.runtime import meeting


def store() -> Any:
    return TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=120))


def all_meet(common: Any, size: int) -> list[Any]:
    clones = [common.clone() for _ in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(meeting.meet, clones, range(size), [size] * size))


def test_all_ranks_get_the_same_store() -> None:
    common = store()
    first, *others = all_meet(common, 4)
    first.set("word", "here")
    assert [other.get("word") for other in others] == [b"here"] * 3


@pytest.mark.parametrize("size", [4, 2, 6])
def test_restart_ignores_entries_of_earlier_ranks(size: int) -> None:
    common = store()
    all_meet(common, 4)[0].set("word", "stale")
    later = all_meet(common, size)
    assert not any(place.check(["word"]) for place in later)
    later[-1].set("word", "fresh")
    assert later[0].get("word") == b"fresh"


def test_meet_times_out_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "MEETING", 0.1)
    with pytest.raises(RankError, match="rank 1 of 2 waited 0 s for the others"):
        meeting.meet(HashStore(), 1, 2)
