"""A directory in which one process at a time works, for as long as that process lives.

`acquire` locks it for one process. `held` does so for a training, whose ranks wait together.
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
"""The file that is locked. It stays, and says who locked it last: only the kernel's lock counts."""

RESTART = 30.0
"""Seconds within which an old rank 0, which torchrun is ending, has released the lock."""
PAUSE = 0.2


@contextmanager
def held(
    directory: Path, world: "World", patience: float, tell: Callable[[str], None]
) -> Iterator[list[str]]:
    """Within it, no other training works in the directory; yields notes about that for the user.

    Rank 0 holds the lock. All ranks share in each attempt, so that none seems to stand still.

    Args:
        directory: It is made where it is missing.
        world: The ranks of this training.
        patience: Seconds to wait for another training's end before this one is refused.
        tell: Called when it begins to wait.
    """
    claim = _Claim(directory, patience, tell)
    try:
        while not world.from_leader(claim.attempt):
            world.pulse.at("starting")
            time.sleep(PAUSE)
        yield claim.notes
    finally:
        claim.release()


@dataclass(slots=True)
class _Claim:
    """What a process does to have a directory to itself."""

    directory: Path
    patience: float
    tell: Callable[[str], None]
    notes: list[str] = field(default_factory=list)
    _descriptor: int | None = None
    _deadline: float | None = None

    def attempt(self) -> bool:
        """Whether training may go on: the directory is locked now, or cannot be locked at all."""
        try:
            self._descriptor = acquire(self.directory)
        except BlockingIOError:
            self._wait()
            return False
        except OSError as error:
            self.notes.append(
                f"{self.directory}: cannot be locked ({error.strerror}): nothing would stop a "
                "second training there"
            )
        return True

    def release(self) -> None:
        """Let others in; the kernel does it, too, however this process ends."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def _wait(self) -> None:
        what = f"{self.directory}: another training is at work there, {holder(self.directory)}"
        first = self._deadline is None
        self._deadline = self._deadline or time.monotonic() + self.patience
        if time.monotonic() >= self._deadline:
            raise TranseptError(f"{what}. Wait for its end or stop it, or choose another directory")
        if first:
            self.tell(f"{what}; waiting up to {self.patience:.0f} s for its end")


def acquire(directory: Path) -> int:
    """Lock a directory, which is made if it is missing; closing the descriptor unlocks it.

    BlockingIOError says that another process holds the lock.
    """
    make_directory(directory)
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        # Not flock, nor an "open file description" lock: a fork inherits these, and would hold
        # them after the owner's death. This one is the process's own, and NFS keeps it between
        # machines. It goes when the process closes any descriptor of the file: nobody else here
        # opens it.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    since = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
    with suppress(OSError):  # the disk may be full: whoever must wait is then told less
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {platform.node()} since {since}".encode())
    return descriptor


def holder(directory: Path) -> str:
    """The process that locked the directory last, as its lock file names it."""
    with suppress(OSError):
        if name := (directory / LOCK).read_text(encoding="utf-8", errors="replace"):
            return name
    return "which has not left its name"
