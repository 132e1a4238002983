"""Forks of this process, what they are told to do, and how they end."""

import ctypes
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

PATIENCE = 120
"""Seconds after which a child that hangs is ended, and counts as broken."""
CRASH = 70
"""The exit code of a child that raised what is no error of transept's."""


class BrokenError(Exception):
    """What did not survive, in a sentence."""


def demand(holds: object, otherwise: str) -> None:
    """Go on only if it holds."""
    if not holds:
        raise BrokenError(otherwise)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code (−9: killed by signal 9), and what it said."""

    code: int
    said: str

    def demand(self, code: int, *phrases: str) -> None:
        """It must have ended with this code, said these things, and shown no traceback."""
        tail = self.said[-600:]
        demand(self.code == code, f"exit code {self.code} instead of {code}:\n{tail}")
        demand("Traceback" not in self.said, f"a traceback:\n{tail}")
        for phrase in phrases:
            demand(phrase in self.said, f"{phrase!r} is not said:\n{tail}")


def die_with_parent() -> None:
    """No fork outlives whoever made it, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Child:
    """A fork of this process at work in a directory."""

    def __init__(self, work: Callable[[], int | None], directory: Path) -> None:
        self._said = directory / f"said-{random.getrandbits(40):x}"
        self._said.touch(0o666)  # a child may be killed before it can do so
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._live(work, directory)

    def _live(self, work: Callable[[], int | None], directory: Path) -> NoReturn:
        code: Any = CRASH
        try:
            die_with_parent()
            os.chdir(directory)
            said = os.open(self._said, os.O_WRONLY)
            os.dup2(said, 1)
            os.dup2(said, 2)
            signal.alarm(PATIENCE)
            code = work() or 0
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else CRASH)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> Ended:
        _, status = os.waitpid(self.pid, 0)
        return self.ended(status)

    def ended(self, status: int) -> Ended:
        """What became of it, from the status that `waitpid` gave."""
        said = self._said.read_text(encoding="utf-8", errors="replace")
        self._said.unlink()
        return Ended(os.waitstatus_to_exitcode(status), said)


def apart(work: Callable[[], None], directory: Path) -> None:
    """Do this in a fork, and be told here how it failed."""
    note = directory / "broken"

    def carefully() -> int:
        signal.alarm(0)  # its children have alarms of their own
        try:
            work()
        except BrokenError as error:
            note.write_text(str(error), encoding="utf-8")
            return 1
        return 0

    ended = Child(carefully, directory).wait()
    if ended.code == 1 and note.exists():
        raise BrokenError(note.read_text(encoding="utf-8"))
    demand(ended.code == 0, f"the experiment itself failed ({ended.code}): {ended.said[-1500:]}")


def transept(*words: object) -> int:
    """The command line, in this process."""
    from transept.cli.app import main

    try:
        main([str(word) for word in words])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else CRASH


class Watching:
    """An observer that calls back at each line of the log."""

    def __init__(self, note: Callable[[dict[str, Any]], object]) -> None:
        self._note = note

    def observe(self, line: Any) -> None:
        self._note(dict(line))

    def close(self) -> None:
        """Nothing was kept open."""
