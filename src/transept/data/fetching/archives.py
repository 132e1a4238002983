"""Extracts known members from an archive.

A member's name is only compared with the wanted names and never used as a path, so an archive
cannot write outside the output directory. A member that is a link or a device is rejected.
"""

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from transept.errors import Argument, DataError

BLOCK = 1 << 20
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)


def unpack(archive: Path, wanted: dict[str, Path]) -> None:
    """Write each wanted member to its path.

    Args:
        archive: A tar (plain or compressed) or zip file.
        wanted: The members to extract, each with the file to write.
    """
    missing = set(wanted)
    try:
        members = _zip_members if zipfile.is_zipfile(archive) else _tar_members
        for name, size, content in members(archive, missing):
            _write(content, size, wanted[name])
            missing.discard(name)
            if not missing:
                break
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{archive} cannot be unpacked: {error}") from error
        raise DataError(
            f"{archive} is damaged or not an archive ({error}); delete it and fetch again"
        ) from error
    if missing:
        raise DataError(
            f"{archive} lacks {', '.join(sorted(missing))}; is it another edition of this archive?"
        )


Member = tuple[str, int, IO[bytes]]


def _tar_members(archive: Path, wanted: Collection[str]) -> Iterator[Member]:
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            name = member.name.removeprefix("./")
            if name not in wanted:
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise DataError(f"{archive}: {name} is a link or a device, not a regular file")
            yield name, member.size, content


def _zip_members(archive: Path, wanted: Collection[str]) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            name = member.filename.removeprefix("./")
            if name not in wanted:
                continue
            mode = member.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise DataError(f"{archive}: {name} is a link or a device, not a regular file")
            with zipped.open(member) as content:
                yield name, member.file_size, content


def _write(content: IO[bytes], size: int, path: Path) -> None:
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise DataError(
            f"{path.parent} has {free / 1e9:.1f} GB free, but {path.name} needs "
            f"{size / 1e9:.1f} GB; free some space or choose another ",
            Argument("output"),
        )
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, BLOCK)
