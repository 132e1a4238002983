"""Two training runs in the same directory: only one at a time may write."""

import ctypes
import errno
import fcntl
import os
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.torchrun import start
from tests.integration.workshop import Workshop, run

from transept.checkpoint import Checkpoints
from transept.runtime.distributed import ALONE
from transept.runtime.lock import held

LONG = ("training.max_steps=100000", "validation.every_steps=100000")


@contextmanager
def training(workshop: Workshop, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`transept train` in a process that has written a checkpoint and is then paused."""
    words = ["train", str(workshop.config), *LONG, "data.workers=1", "--output", str(output)]
    process = subprocess.Popen([sys.executable, "-m", "transept", *words])
    try:
        while not Checkpoints(output / "checkpoints").steps():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_second_training_is_rejected_until_the_first_ends(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "run"
    again = ("train", workshop.config, *LONG, "data.workers=1", "--output", output)
    with training(workshop, output) as first:
        assert run(*again) == 1
        errors = capsys.readouterr().err
        assert f"transept: {output}: another training is running there" in errors
        assert f"process {first.pid} on {platform.node()} since 20" in errors
        assert run("info", output) == 0
        assert run("average", output, "--last", 1, "--output", tmp_path / "mean") == 0
        assert first.poll() is None
    assert run(*again, "--minutes", 0.001) == 75
    assert "resuming from step" in capsys.readouterr().err


@pytest.mark.slow
def test_under_torchrun_the_next_leader_waits_for_the_one_before(
    workshop: Workshop, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    with held(output, ALONE, 0.0, print):
        job = start(workshop, output, "training.max_steps=1")
        assert job.process.stderr is not None
        said = ""
        while "waiting up to 30 s for it to end" not in said:
            assert job.process.poll() is None, said
            said += job.process.stderr.readline()
        assert f"process {os.getpid()} on" in said
    errors = job.end()
    assert job.process.returncode == 0, errors
    assert Checkpoints(output / "checkpoints").steps() == [1]


# --- where nothing can be locked -------------------------------------------------------------

SYSTEM_CALL = {"aarch64": (0xC00000B7, 25), "x86_64": (0xC000003E, 72)}
"""How the kernel calls the machine, and its fcntl."""
ALLOW, REFUSE, NO_NEW_PRIVILEGES, SECCOMP, FILTER = 0x7FFF0000, 0x00050000, 38, 22, 2
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06


def without_locks() -> Callable[[], None]:
    """What makes the kernel answer a process that asks for a lock as some file systems do."""
    machine, number = SYSTEM_CALL[platform.machine()]
    program = b"".join(
        struct.pack("HBBI", *line)
        for line in (
            (LOAD, 0, 0, 4),  # of seccomp_data: the machine
            (IF_EQUAL, 0, 5, machine),
            (LOAD, 0, 0, 0),  # the call
            (IF_EQUAL, 0, 3, number),
            (LOAD, 0, 0, 24),  # its second argument
            (IF_EQUAL, 0, 1, fcntl.F_SETLK),
            (RETURN, 0, 0, REFUSE | errno.ENOLCK),
            (RETURN, 0, 0, ALLOW),
        )
    )
    lines = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HP", 8, ctypes.addressof(lines)))
    libc = ctypes.CDLL(None, use_errno=True)

    def apply() -> None:
        assert lines
        zero = ctypes.c_ulong(0)
        libc.prctl(NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero)
        if libc.prctl(SECCOMP, ctypes.c_ulong(FILTER), header, zero, zero):
            raise OSError(ctypes.get_errno(), "no filter of system calls")

    return apply


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in SYSTEM_CALL, reason="its calls are not listed")
def test_train_warns_if_the_directory_cannot_be_locked(workshop: Workshop, tmp_path: Path) -> None:
    words = [
        "train",
        str(workshop.config),
        "training.max_steps=2",
        "--output",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "transept", *words],
        capture_output=True, text=True, check=False, preexec_fn=without_locks(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    why = os.strerror(errno.ENOLCK)
    assert done.stderr.count(f"warning: {tmp_path / 'run'}: cannot be locked ({why})") == 1
    assert Checkpoints(tmp_path / "run/checkpoints").steps() == [2]
