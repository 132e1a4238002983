"""Records the progress of a preparation, so that the next run can resume it.

    OUTPUT.partial/corpus/        the unfinished corpus; renamed to OUTPUT at the end
    OUTPUT.partial/seen           the hashes of all pairs so far (see `duplicates`)
    OUTPUT.partial/journal.json   the last commit: how much of the input is processed
    OUTPUT.partial/lock           held by the process that writes (see `runtime.lock`)

The size of each file at the last commit follows from the counts. Data after it is truncated.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from transept import config
from transept.data.preparation.changes import changes
from transept.data.shards import SIDES, Settings
from transept.errors import Argument, ConfigError, DataError
from transept.runtime.lock import acquire, holder
from transept.runtime.storage import sealed, unsealed, write_file

JOURNAL = "journal.json"


def partial_directory(output: Path) -> Path:
    """Return the directory of an unfinished corpus."""
    return output.with_name(f"{output.name}.partial")


@dataclass(kw_only=True, slots=True)
class JournalState:
    """The counts of a preparation. `checksum` covers the input text so far."""

    chunks: int = 0
    checksum: int = 0
    rows: int = 0
    pairs: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    unknown: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SIDES, 0))
    report_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entry:
    settings: Settings
    state: JournalState


class Journal:
    """The file of the last commit."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        self._path = directory / JOURNAL
        self._settings = settings

    def load(self) -> JournalState:
        """Return the last committed state, or a new one if there is none."""
        try:
            table = unsealed(self._path.read_bytes())
            entry = config.structure(_Entry, table)
        except FileNotFoundError:
            return JournalState()
        except (OSError, ValueError, ConfigError) as error:
            raise DataError(
                f"{self._path} is damaged or from another version ({error}); start "
                "from scratch with ",
                Argument("restart"),
            ) from error
        if changed := changes(entry.settings, self._settings):
            raise DataError(
                f"{self._path.parent} holds an unfinished preparation with other settings:",
                *changed,
                "\nContinue with those, or start from scratch with ",
                Argument("restart"),
            )
        return entry.state

    def commit(self, state: JournalState) -> None:
        """Record that everything counted in `state` is on disk."""
        entry = _Entry(settings=self._settings, state=state)
        write_file(self._path, sealed(config.as_table(entry)))

    def discard(self) -> None:
        """Forget the last commit."""
        self._path.unlink(missing_ok=True)


def reopen(path: Path, size: int) -> IO[bytes]:
    """Open a file to append to, as it was when it had `size` bytes."""
    path.touch()
    file = path.open("r+b")
    if file.seek(0, os.SEEK_END) < size:
        file.close()
        raise DataError(
            f"{path} is shorter than recorded; start from scratch with ", Argument("restart")
        )
    file.truncate(size)
    file.seek(size)
    return file


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make the directory and lock it, so that two runs cannot write to the same files."""
    try:
        lock = acquire(directory)
    except BlockingIOError as error:
        raise DataError(
            f"{directory}: another process is preparing this corpus, {holder(directory)}; wait for "
            "it or stop it"
        ) from error
    except OSError as error:
        raise DataError(
            f"{directory} cannot be created ({error.strerror}); choose another ", Argument("output")
        ) from error
    try:
        yield
    finally:
        os.close(lock)
