import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from transept.errors import DataError
from transept.runtime.workers import Workers


def double(number: int) -> int:
    return 2 * number


def negate(number: int) -> int:
    return -number


def fail(number: int) -> int:
    if number == 1:
        raise DataError("line 1 is not a sentence")
    return 1 // number


def numbers(size: int) -> dict[str, NDArray[np.int32]]:
    return {"numbers": np.arange(size, dtype=np.int32), "none": np.zeros(0, dtype=np.int32)}


def wait_for(path: Path) -> Path:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, "the pool waits for this worker"
        time.sleep(0.01)
    return path


class Gate:
    """Is not received before a file exists."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[Path], Path], tuple[Path]]:
        return wait_for, (self._path,)


class Late:
    """Work that is larger than the buffer of a pipe, and is received late."""

    def __init__(self, gate: Gate | Path, content: bytes) -> None:
        self._gate, self._content = gate, content

    def __reduce__(self) -> tuple[type["Late"], tuple[Gate | Path, bytes]]:
        return Late, (self._gate, self._content)

    def __call__(self, number: int) -> int:
        return number + len(self._content)


def doubling(count: int) -> Workers[int, int]:
    return Workers([double] * count, "worker", lambda answer: answer)


def test_map_keeps_order_and_limits_submitted_tasks() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for number in range(40):
            taken.append(number)
            yield number

    with doubling(2) as workers:
        for number, result in enumerate(workers.map(tasks(), ahead=6)):
            assert result == 2 * number
            assert len(taken) <= number + 6 + 1
    assert len(taken) == 40
    assert multiprocessing.active_children() == []


def test_each_worker_uses_its_own_callable_and_finish_runs_in_parent() -> None:
    with Workers([double, negate], "worker", lambda answer: (os.getpid(), answer)) as workers:
        results = list(workers.map([-1, -1, -2], ahead=1))
    assert results == [(os.getpid(), -2), (os.getpid(), 1), (os.getpid(), -4)]


def test_all_workers_start_before_one_has_received_its_work(tmp_path: Path) -> None:
    size, gate = 1 << 20, tmp_path / "gate"
    with Workers([Late(Gate(gate), bytes(size))] * 2, "worker", int) as workers:
        gate.touch()
        assert list(workers.map(range(2), ahead=2)) == [size, size + 1]


def test_arrays_are_transferred_unchanged() -> None:
    with Workers([numbers], "worker", lambda answer: answer) as workers:
        (answer,) = workers.map([1_000_000], ahead=1)
    assert np.array_equal(answer["numbers"], np.arange(1_000_000))
    assert answer["none"].size == 0


def test_worker_errors_are_raised_in_parent() -> None:
    with Workers([fail], "worker", lambda answer: answer) as workers:
        with pytest.raises(DataError, match=r"^line 1 is not a sentence") as meant:
            next(workers.map([1], ahead=1))
        with pytest.raises(DataError, match=r"^worker 1 of 1 failed: ZeroDivisionError") as bug:
            next(workers.map([0], ahead=1))
        assert list(workers.map([2], ahead=1)) == [0]
    for error in (meant, bug):
        assert error.value.__notes__[0].startswith("In worker 1 of 1:\nTraceback")


def test_dead_worker_is_reported() -> None:
    with doubling(1) as workers:
        results = workers.map(range(100), ahead=3)
        next(results)
        multiprocessing.active_children()[0].kill()
        with pytest.raises(DataError, match=r"worker 1 of 1 was killed by signal 9; .* memory"):
            list(results)


def test_workers_ignore_signals() -> None:
    with doubling(1) as workers:
        results = workers.map(range(20), ahead=3)
        next(results)
        (worker,) = multiprocessing.active_children()
        for number in (signal.SIGINT, signal.SIGTERM):
            assert worker.pid is not None
            os.kill(worker.pid, number)
        assert len(list(results)) == 19


def test_workers_ignore_signals_from_their_start() -> None:
    """Runs in a separate process, whose first child starts multiprocessing's resource tracker."""
    code = """
import multiprocessing, os, signal
from transept.runtime.workers import Workers
with Workers([abs], "worker", str) as workers:
    (worker,) = multiprocessing.active_children()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        os.kill(worker.pid, number)
    print(*workers.map([-5], ahead=1))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("5\n", "")
