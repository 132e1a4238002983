r"""Lines of files, byte for byte, compressed or not.

A line ends at `\n` and nowhere else: `str.splitlines` would also cut at U+2028, U+0085 and a dozen
more, and the two sides of a parallel corpus would no longer be line for line.
"""

import codecs
import errno
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zstandard

from transept.errors import DataError
from transept.progress import Tally
from transept.runtime.storage import write_file

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

STANDARD_INPUT = Path("-")

_BUFFER = 1 << 20
_CHUNK = 1 << 16
_WIDE = {  # UTF-32 first: its little-endian mark begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_ARCHIVES = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"(\xb5/\xfd": ".zst"}
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError)


def read_lines(path: Path, tally: Tally | None = None) -> Iterator[bytes]:
    """Each line of a file without its newline; .gz, .xz and .zst are decompressed.

    A file that begins as UTF-16 or as an archive does is refused: its lines would be torn.

    Args:
        path: The file, or `-` for standard input.
        tally: Counts the bytes of the file as they are read from disk, before decompression;
            `stored_size` is their total. Standard input is not counted.
    """
    lines = read_raw_lines(path, tally)
    for first in lines:
        _refuse_wide(first, path)
        _refuse_archive(first, path)
        yield first.removesuffix(b"\n")
        break
    for line in lines:
        yield line.removesuffix(b"\n")


def read_text(path: Path, tally: Tally | None = None) -> Iterator[str]:
    """Each line of a UTF-8 file without its newline, as `read_lines` gives them."""
    for number, line in enumerate(read_lines(path, tally), start=1):
        yield decode_line(line, path, number)


def read_sentences(path: Path) -> Iterator[str]:
    """Each line of a file of sentences: what is no text is refused, a byte order mark dropped."""
    for number, line in enumerate(read_text(path), start=1):
        if "\0" in line:
            raise DataError(
                f"{describe(path)}, line {number}: holds a zero byte, so it is no text; "
                "give a file of UTF-8 text, one sentence a line"
            )
        # Some editors begin a file with a byte order mark, which would be a token.
        yield line.removeprefix("\ufeff") if number == 1 else line


def write_sentences(path: Path, lines: Iterable[str]) -> None:
    """Write a file line by line, such that nobody ever sees half of it."""
    try:
        write_file(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"{path}: cannot be written ({why}); choose another place") from error


def read_raw_lines(path: Path, tally: Tally | None = None) -> Iterator[bytes]:
    """Each line of a file with its newline; the last may have none."""
    try:
        with _opened(path, tally) as stream:
            yield from stream
    except _DAMAGE as error:
        raise DataError(
            f"{path}: the {path.suffix} archive is damaged or cut short ({error}); "
            "fetch or make it again"
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def stored_size(path: Path) -> int | None:
    """The bytes of a file as it lies on disk; None for standard input and other pipes."""
    status = _status(path)
    return status and status.st_size


def modification_time(path: Path) -> int | None:
    """When a file was last written, in nanoseconds; None for standard input and other pipes."""
    status = _status(path)
    return status and status.st_mtime_ns


def decode_line(line: bytes, path: Path, number: int) -> str:
    """A line as text, or an error that says where it is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        if number == 1:
            _refuse_wide(line, path)
            _refuse_archive(line, path)
        raise DataError(
            f"{describe(path)}, line {number}: byte {error.start + 1} (0x{line[error.start]:02x}) "
            "is not UTF-8; convert the file first, for instance with `iconv -f cp1252 -t utf-8` "
            "(`file -i` guesses what to name after -f)"
        ) from error


def _refuse_wide(first: bytes, path: Path) -> None:
    """Refuse a file that by its first line is UTF-16, "Unicode" on Windows, or UTF-32."""
    for mark, encoding in _WIDE.items():
        if first.startswith(mark):
            raise DataError(
                f"{describe(path)}: is {encoding} and not UTF-8, by its first bytes; convert it "
                f"with `iconv -f {encoding} -t UTF-8`"
            )


def _refuse_archive(first: bytes, path: Path) -> None:
    """Refuse a file that is compressed, and whose name does not say so; and one by bzip2."""
    if _BZIP2.match(first):
        raise DataError(
            f"{describe(path)}: is an archive, by its first bytes; decompress it with `bunzip2`"
        )
    for mark, suffix in _ARCHIVES.items():
        if first.startswith(mark):
            raise DataError(
                f"{describe(path)}: is an archive, by its first bytes; give it as a file whose "
                f"name ends in {suffix}"
            )


def describe(path: Path) -> str:
    """What to call a file in a message."""
    return "standard input" if str(path) in ("-", "/dev/stdin") else str(path)


def _status(path: Path) -> os.stat_result | None:
    """What the disk says about a file; None for standard input and other pipes."""
    if path == STANDARD_INPUT:
        return None
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    except OSError as error:
        raise _unreadable(path, error) from error
    return status if stat.S_ISREG(status.st_mode) else None


def _unreadable(path: Path, error: OSError) -> DataError:
    why = error.strerror or error
    return DataError(f"{describe(path)}: cannot be read ({why}); check the path")


@contextmanager
def _opened(path: Path, tally: Tally | None) -> Iterator[Iterable[bytes]]:
    """The lines of a file after decompression."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with _Counted(path, tally) as file, io.BufferedReader(file, _BUFFER) as stored:
        if path.suffix not in _DECOMPRESSORS:
            yield stored
            return
        if not stored.peek(1):
            raise EOFError("it is empty")
        # GzipFile and LZMAFile give lines at Python's speed; a BufferedReader over them at C's.
        with io.BufferedReader(_DECOMPRESSORS[path.suffix](stored), _BUFFER) as stream:
            yield stream


class _Counted(io.FileIO):
    """A file that reports how much of it has been read."""

    def __init__(self, path: Path, tally: Tally | None) -> None:
        super().__init__(path)
        self._tally = tally

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        n_bytes = super().readinto(buffer)
        if self._tally is not None and n_bytes:
            self._tally.add(n_bytes)
        return n_bytes


class _ZstandardFile(io.RawIOBase):
    """Decompresses frame after frame; unlike zstandard's own reader, it reports a missing end."""

    def __init__(self, stored: "io.BufferedReader[Any]") -> None:
        self._stored = stored
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._compressed = b""
        self._text = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer).cast("B")
        while not self._text and self._decompress():
            pass
        n_bytes = min(len(view), len(self._text))
        view[:n_bytes] = self._text[:n_bytes]
        self._text = self._text[n_bytes:]
        return n_bytes

    def _decompress(self) -> bool:
        """Decompress some more; False at the end of the file."""
        compressed = self._compressed or self._stored.read1(_CHUNK)
        if not compressed:
            if self._frame is not None:
                raise EOFError("it ends inside a frame")
            return False
        frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
        self._text = memoryview(frame.decompress(compressed))
        self._compressed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
        return True


_DECOMPRESSORS: "dict[str, Callable[[io.BufferedReader[Any]], Any]]" = {
    ".gz": lambda stored: gzip.GzipFile(fileobj=stored),
    ".xz": lzma.LZMAFile,
    ".zst": _ZstandardFile,
}
COMPRESSED = frozenset(_DECOMPRESSORS)
"""Endings of the names of files that are decompressed when they are read."""
