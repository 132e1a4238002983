import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from transept.errors import TranseptError
from transept.runtime.distributed import ALONE
from transept.runtime.lock import LOCK, held

HOLDER = """
import os, sys, time
from pathlib import Path
from transept.runtime.distributed import ALONE
from transept.runtime.lock import held

with held(Path(sys.argv[1]), ALONE, 0.0, print):
    fork = os.fork()
    if fork:
        print(fork, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """A process that holds the lock, and its fork."""
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        fork = int(process.stdout.readline())
        yield process.pid, fork
        os.kill(fork, signal.SIGKILL)
        process.kill()


def refused(directory: Path, patience: float) -> tuple[str, list[str]]:
    """The error message, and the messages reported before it."""
    reported: list[str] = []
    with pytest.raises(TranseptError) as error, held(directory, ALONE, patience, reported.append):
        pass
    return str(error.value), reported


def test_lock_is_released_when_holder_dies_although_its_fork_lives(
    holder: tuple[int, int], tmp_path: Path
) -> None:
    process, fork = holder
    name = f"process {process} on {platform.node()} since 20"
    at_once, reported = refused(tmp_path, 0.0)
    assert at_once.startswith(f"{tmp_path}: another training is running there, {name}")
    assert at_once.endswith("Wait for it, stop it, or choose another directory")
    assert not reported
    _, reported = refused(tmp_path, 0.5)
    assert len(reported) == 1
    assert name in reported[0]
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    with held(tmp_path, ALONE, 0.0, print) as notes:
        assert not notes
        os.kill(fork, 0)
    assert f"process {os.getpid()} " in (tmp_path / LOCK).read_text()


def test_lock_is_released_after_block_and_directory_is_created(tmp_path: Path) -> None:
    for _ in range(2):
        with held(tmp_path / "runs/new", ALONE, 0.0, print) as notes:
            assert not notes


def test_unlockable_directory_gives_a_note_and_training_continues(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with held(tmp_path, ALONE, 0.0, print) as notes:
        assert notes == [
            f"{tmp_path}: cannot be locked (Is a directory), so a second training there would not "
            "be prevented"
        ]
