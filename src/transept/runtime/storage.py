"""Atomic writes: a file is complete or missing, even after a crash or a power failure.

New content is written under another name, flushed to disk and renamed. Then the directory is
flushed, because until then a power failure may undo the rename. One process writes at a time.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

SEAL = "seal"
_BLANK = "0" * 64


# --- files and directories -------------------------------------------------------------------


def part_of(path: Path) -> Path:
    """The temporary name of a file or directory until it is complete."""
    return path.with_name(f".{path.name}.part")


def write_file(path: Path, content: bytes) -> None:
    """Write or replace a file atomically."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, table: Mapping[str, Any]) -> None:
    """Write a table as indented JSON."""
    write_file(path, (json.dumps(table, indent=2) + "\n").encode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write to; it replaces `path` once it is on disk and nothing failed."""
    part = part_of(path)
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        flush(path.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_directory(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a directory to fill; it becomes `path` once it is on disk and nothing failed.

    With `replace`, an existing directory at `path` is replaced at that moment. No system can
    rename over a directory, so the old one is renamed first, and briefly `path` does not exist.
    """
    part, old = part_of(path), path.with_name(f".{path.name}.old")
    try:
        shutil.rmtree(part, ignore_errors=True)
        make_directory(path.parent)
        part.mkdir()
        yield part
        flush_tree(part)
        if replace and path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        part.rename(path)
        flush(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove_directory(path: Path) -> None:
    """Remove a directory, renaming it first so that `path` is never incomplete.

    Files that cannot be removed stay.
    """
    part = part_of(path)
    shutil.rmtree(part, ignore_errors=True)
    try:
        path.rename(part)
    except OSError:
        return
    shutil.rmtree(part, ignore_errors=True)


def copy_files(folder: Path, destination: Path) -> None:
    """Copy a folder's files without their permissions, so that the copy can be removed."""
    destination.mkdir()
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            copy_files(path, destination / path.name)
        else:
            shutil.copyfile(path, destination / path.name)


def make_directory(path: Path) -> None:
    """Make a directory and its missing parents, and flush them to disk."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        flush(path.parent)


def flush_tree(directory: Path) -> None:
    """Flush everything below a directory to disk."""
    for path in directory.rglob("*"):
        flush(path)
    flush(directory)


def flush(path: Path) -> None:
    """Flush a file's contents, or a directory's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- checksums -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """Size and checksum of a written file."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "Stored":
        """Compute them from the file as it is now."""
        return cls(path.stat().st_size, digest(path))


def digest(path: Path, kind: str = "sha256") -> str:
    """Return a file's checksum in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


# --- tamper-evident tables -------------------------------------------------------------------


def sealed(table: Mapping[str, Any]) -> bytes:
    """Return a table as JSON that contains the sha256 of the whole file.

    The checksum is computed with zeros in its own place.
    """
    blank = json.dumps({**table, SEAL: _BLANK}, indent=2) + "\n"
    seal = hashlib.sha256(blank.encode()).hexdigest()
    head, _, tail = blank.rpartition(_BLANK)
    return f"{head}{seal}{tail}".encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """Return the table given to `sealed`; raise ValueError if any byte has changed.

    A table without a seal was written by an older transept, and is accepted. Callers should
    reject unknown keys: one of them may be a corrupted seal key.
    """
    table = json.loads(content)
    if not isinstance(table, dict):
        raise ValueError("it is not a JSON object")
    seal = table.pop(SEAL, None)
    if seal is not None:
        blank = content.replace(str(seal).encode(), _BLANK.encode())
        if hashlib.sha256(blank).hexdigest() != seal:
            raise ValueError("it was changed after it was written")
    return table
