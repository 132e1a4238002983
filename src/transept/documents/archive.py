"""Zip files: read within limits, and written again with some members replaced.

Nothing is unpacked to a disk. A file that could exhaust the memory, or that readers disagree about,
is rejected.
"""

import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath

from transept.errors import DataError

MOST_BYTES = 100_000_000
"""The maximum size of a file."""
MOST_EXPANDED = 300_000_000
"""The maximum size of all members of a zip file together, decompressed."""
MOST_MEMBERS = 10_000
MOST_DIRECTORY = 2_000_000
"""The maximum size of the list of members in bytes."""
MOST_RATIO = 150
"""The maximum compression ratio of a member of more than `SMALL` bytes. Text reaches about 30."""
SMALL = 1_000_000
PICTURES = frozenset({".emf", ".wmf", ".bmp", ".tif", ".tiff"})
"""Suffixes of pictures that are stored without compression. A blank area reaches any ratio."""
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class ZippedFile:
    """The members of a zip file."""

    def __init__(self, data: bytes, name: str) -> None:
        """Check the directory of a zip file. No member is decompressed yet."""
        self._name = name
        check_size(data, name)
        if data.startswith(_OLE):
            raise DataError(
                f"{name}: is encrypted, or has the format of Office 97; open it in an office "
                "program and save it without a password in a current format"
            )
        self._check_directory(data)
        try:
            self._file = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise self._damaged(str(error)) from error
        self.names = [info.filename for info in self._file.infolist()]
        self._check()

    def _check_directory(self, data: bytes) -> None:
        """Reject a directory that would need much memory, before it is read."""
        end = data.rfind(b"PK\5\6")
        if end >= 0 and int.from_bytes(data[end + 12 : end + 16], "little") > MOST_DIRECTORY:
            raise self._bomb("too many members")

    def _check(self) -> None:
        """Check what the directory declares. `read` checks that this is true."""
        infos = self._file.infolist()
        if len(infos) > MOST_MEMBERS:
            raise self._bomb(f"{len(infos):,} members, more than {MOST_MEMBERS:,}")
        expanded = sum(info.file_size for info in infos)
        if expanded > MOST_EXPANDED:
            raise self._bomb(f"{expanded:,} bytes decompressed, more than {MOST_EXPANDED:,}")
        repeated = [name for name, n in Counter(self.names).items() if n > 1]
        if repeated:
            raise self._damaged(f"the member {repeated[0]!r} occurs twice")
        for info in infos:
            if info.flag_bits & 1:
                raise self.encrypted()
            if info.compress_type not in _METHODS:
                raise self._damaged(f"unusual compression of {info.filename!r}")
            is_picture = PurePosixPath(info.filename).suffix.lower() in PICTURES
            if not is_picture and info.file_size > max(SMALL, MOST_RATIO * info.compress_size):
                raise self._bomb(f"a member that compressed too well, {info.filename!r}")
            if not _is_safe(info.filename):
                raise self._damaged(f"the member {info.filename!r} is outside of the archive")

    def size(self, member: str) -> int:
        """The size of a member, decompressed."""
        return self._file.getinfo(member).file_size

    def read(self, member: str) -> bytes:
        """Decompress a member. It has the declared size and checksum."""
        try:
            return self._file.read(member)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise self._damaged(f"{member}: {error}") from error

    def replaced(self, members: Mapping[str, bytes]) -> bytes:
        """The file with other contents of some members.

        The order, the times and the compression of the members stay. The same input gives the same
        bytes.
        """
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as output:
            for info in self._file.infolist():
                copy = zipfile.ZipInfo(info.filename, info.date_time)
                copy.compress_type = info.compress_type
                copy.external_attr, copy.create_system = info.external_attr, info.create_system
                content = members.get(info.filename)
                output.writestr(copy, self.read(info.filename) if content is None else content)
        return buffer.getvalue()

    def encrypted(self) -> DataError:
        """The error for an encrypted file."""
        return DataError(f"{self._name}: is encrypted; save it without a password or DRM")

    def _damaged(self, why: str) -> DataError:
        return DataError(
            f"{self._name}: is damaged or is not a {PurePosixPath(self._name).suffix} file "
            f"({why}); open it in the program that wrote it and save it again"
        )

    def _bomb(self, why: str) -> DataError:
        return DataError(f"{self._name}: has {why}; split the document into smaller ones")


def check_size(data: bytes, name: str) -> None:
    """Reject a file that is too large."""
    if len(data) > MOST_BYTES:
        raise DataError(
            f"{name}: has {len(data):,} bytes, more than {MOST_BYTES:,}; split the document into "
            "smaller ones"
        )


def _is_safe(member: str) -> bool:
    path = PurePosixPath(member)
    is_drive = ":" in path.parts[0] if path.parts else True
    return not (path.is_absolute() or ".." in path.parts or is_drive or "\\" in member)
