"""Bulk work in parts, by ranks that start at different times."""

from pathlib import Path

import pytest

from transept.errors import ConfigError
from transept.runtime.parts import Parts

SETTINGS = {"beam_size": 4}


def work(parts: Parts, n: int) -> list[int]:
    """Produce a rank's share of `n` parts and return their numbers."""
    mine = [number for number in range(n) if parts.is_mine(number)]
    for number in mine:
        parts.put(number, f"{number}\n".encode())
    parts.join(n)
    return mine


def test_rank_still_starting_during_join_has_nothing_to_do(
    tmp_path: Path,
) -> None:
    output = tmp_path / "out"
    begun = Parts(output)
    assert begun.begin(SETTINGS)
    for number in (1, 3):
        begun.put(number, f"{number}\n".encode())
    first, second = Parts(output, 0, 2), Parts(output, 1, 2)
    assert second.begin(SETTINGS)
    assert first.begin(SETTINGS)
    assert work(first, 4) == [0, 2]
    assert work(second, 4) == []
    assert output.read_text() == "0\n1\n2\n3\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_begin_returns_false_after_join(tmp_path: Path) -> None:
    output = tmp_path / "out"
    first, second = Parts(output, 0, 2), Parts(output, 1, 2)
    assert first.begin(SETTINGS)
    assert work(first, 1) == [0]
    assert not second.begin(SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(ConfigError, match="already exists"):
        first.begin(SETTINGS)


def test_begin_returns_false_during_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out"
    first, second = Parts(output, 0, 2), Parts(output, 1, 2)
    assert first.begin(SETTINGS)
    looks = iter([False])  # the first check finds no output: rank 0 is about to join the parts

    def exists(path: Path) -> bool:
        if path == output and not next(looks, True):
            work(first, 1)
            return False
        return path.is_file() or path.is_dir()

    monkeypatch.setattr(Path, "exists", exists)
    assert not second.begin(SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
