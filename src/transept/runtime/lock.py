"""Locks a directory for one process, for as long as that process lives.

`acquire` locks it for a single process. `held` locks it for a training run, whose ranks wait
together.
"""

import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from transept.errors import TranseptError
from transept.runtime.storage import make_directory

if TYPE_CHECKING:
    from transept.runtime.distributed import World

LOCK = "lock"
"""The locked file. It is never removed and names the last holder. Only the kernel's lock counts."""

RESTART = 30.0
"""Seconds to wait for an old rank 0, which torchrun is ending, to release the lock."""
PAUSE = 0.2


@contextmanager
def held(
    directory: Path, world: "World", patience: float, report: Callable[[str], None]
) -> Iterator[list[str]]:
    """Lock the directory for one training run; yield notes for the user.

    Rank 0 holds the lock. All ranks take part in each attempt, so that none seems to hang.

    Args:
        directory: Created if missing.
        world: The ranks of this run.
        patience: Seconds to wait for another run to end before raising an error.
        report: Called with a message when waiting starts.
    """
    claim = _Claim(directory, patience, report)
    try:
        while not world.from_leader(claim.attempt):
            world.pulse.at("starting")
            time.sleep(PAUSE)
        yield claim.notes
    finally:
        claim.release()


@dataclass(slots=True)
class _Claim:
    """The attempts of a process to lock a directory."""

    directory: Path
    patience: float
    report: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    _descriptor: int | None = None
    _deadline: float | None = None

    def attempt(self) -> bool:
        """Whether training may continue: the directory is locked, or cannot be locked at all."""
        try:
            self._descriptor = acquire(self.directory)
        except BlockingIOError:
            self._wait()
            return False
        except OSError as error:
            self.notes.append(
                f"{self.directory}: cannot be locked ({error.strerror}), so a second training "
                "there would not be prevented"
            )
        return True

    def release(self) -> None:
        """Release the lock. The kernel also releases it when this process ends."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _wait(self) -> None:
        what = f"{self.directory}: another training is running there, {holder(self.directory)}"
        first = self._deadline is None
        self._deadline = self._deadline or time.monotonic() + self.patience
        if time.monotonic() >= self._deadline:
            raise TranseptError(f"{what}. Wait for it, stop it, or choose another directory")
        if first:
            self.report(f"{what}; waiting up to {self.patience:.0f} s for it to end")


def acquire(directory: Path) -> int:
    """Lock a directory, creating it if missing. Closing the returned descriptor unlocks it.

    Raises BlockingIOError if another process holds the lock.
    """
    make_directory(directory)
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # Not flock, nor an "open file description" lock: a fork inherits these, and would hold
        # them after the owner's death. A POSIX lock belongs to the process and works across
        # machines on NFS. Closing any descriptor of the file releases it, so the holder must
        # not open the file again.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    since = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    with suppress(OSError):  # the disk may be full; then the holder is unknown
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {platform.node()} since {since}".encode())
    return descriptor


def holder(directory: Path) -> str:
    """The process that locked the directory last, as its lock file names it."""
    with suppress(OSError):
        if name := (directory / LOCK).read_text(encoding="utf-8", errors="replace"):
            return name
    return "whose process is unknown"
