"""Files that are whole or not there: not half of one after a crash, nor after a power failure.

What is new is written under another name, flushed to the disk and renamed; then the directory is
flushed, because until then a power failure may take the name back. One process writes at a time.
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
    """Where a file or directory lies until it is whole."""
    return path.with_name(f".{path.name}.part")


def write_file(path: Path, content: bytes) -> None:
    """Write a file, or replace it, at once or not at all."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, table: Mapping[str, Any]) -> None:
    """Write a table for people and programs to read."""
    write_file(path, (json.dumps(table, indent=2) + "\n").encode())


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `path` when all is well and on the disk."""
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
    """A directory to fill, which becomes `path` when all is well and on the disk.

    With `replace`, the directory at `path` is replaced then, and not before. No system renames over
    a directory, so the old one is first renamed too: for a moment there is none at `path`.
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
    """Remove a directory: by its name, nobody sees a part of it. What cannot be removed stays."""
    part = part_of(path)
    shutil.rmtree(part, ignore_errors=True)
    try:
        path.rename(part)
    except OSError:
        return
    shutil.rmtree(part, ignore_errors=True)


def copy_files(folder: Path, place: Path) -> None:
    """Copy the files of a folder without their permissions, so that the copy can be removed."""
    place.mkdir()
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            copy_files(path, place / path.name)
        else:
            shutil.copyfile(path, place / path.name)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it that are missing, and flush them to the disk."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        flush(path.parent)


def flush_tree(directory: Path) -> None:
    """Make sure that everything below a directory is on the disk."""
    for path in directory.rglob("*"):
        flush(path)
    flush(directory)


def flush(path: Path) -> None:
    """Make sure that a file's contents, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- what was written ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """A file as it was written."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> "Stored":
        """A file as it is now."""
        return cls(path.stat().st_size, digest(path))


def digest(path: Path, kind: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


# --- tables that know when they have been altered --------------------------------------------


def sealed(table: Mapping[str, Any]) -> bytes:
    """A table as JSON, with a sha256 of the whole file in it.

    That is the sha256 of the file with zeros in the place of itself.
    """
    blank = json.dumps({**table, SEAL: _BLANK}, indent=2) + "\n"
    seal = hashlib.sha256(blank.encode()).hexdigest()
    head, _, tail = blank.rpartition(_BLANK)
    return f"{head}{seal}{tail}".encode()


def unsealed(content: bytes) -> dict[str, Any]:
    """What `sealed` was given, or ValueError if any byte has changed.

    A table without a seal is one of an older transept, and taken as it is. Whoever reads it should
    refuse keys that it does not know: one of them may be the seal's, altered.
    """
    table = json.loads(content)
    if not isinstance(table, dict):
        raise ValueError("it is no table")
    seal = table.pop(SEAL, None)
    if seal is not None:
        blank = content.replace(str(seal).encode(), _BLANK.encode())
        if hashlib.sha256(blank).hexdigest() != seal:
            raise ValueError("it is not as it was written")
    return table
