r"""Reads lines of files byte for byte, compressed or not.

A line ends only at `\n`. `str.splitlines` would also split at U+2028, U+0085 and a dozen others,
and the two sides of a parallel corpus would no longer be aligned.
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
_WIDE = {  # UTF-32 first: its little-endian byte order mark begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_ARCHIVES = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"(\xb5/\xfd": ".zst"}
_BZIP2 = re.compile(rb"BZh[1-9]1AY&SY")
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError)


def read_lines(path: Path, tally: Tally | None = None) -> Iterator[bytes]:
    """Yield each line of a file without its newline; .gz, .xz and .zst are decompressed.

    A file that starts like UTF-16 or an archive is rejected, as its lines would be meaningless.

    Args:
        path: The file, or `-` for standard input.
        tally: Counts the bytes read from disk, before decompression. `stored_size` is their
            total. Standard input is not counted.
    """
    for line in _read_checked_lines(path, tally):
        yield line.removesuffix(b"\n")


def _read_checked_lines(path: Path, tally: Tally | None = None) -> Iterator[bytes]:
    lines = read_raw_lines(path, tally)
    for first in lines:
        _reject_wide(first, path)
        _reject_archive(first, path)
        yield first
        break
    yield from lines


def read_text(path: Path, tally: Tally | None = None) -> Iterator[str]:
    """Yield each line of a UTF-8 file without its newline, as `read_lines` does."""
    for number, line in enumerate(read_lines(path, tally), start=1):
        yield decode_line(line, path, number)


def read_sentences(path: Path) -> Iterator[str]:
    """Yield each line of a text file. Binary data is rejected, a byte order mark is dropped."""
    for number, line in enumerate(read_lines(path), start=1):
        yield _decode_sentence(line, path, number)


def read_document(path: Path) -> str:
    """Read a whole text file with its line breaks, as `read_sentences` reads each line."""
    lines = enumerate(_read_checked_lines(path), start=1)
    return "".join(_decode_sentence(line, path, number) for number, line in lines)


def _decode_sentence(line: bytes, path: Path, number: int) -> str:
    text = decode_line(line, path, number)
    if "\0" in text:
        raise DataError(
            f"{describe(path)}, line {number}: has a NUL byte, so it is not text; "
            "give a file of UTF-8 text, one sentence per line"
        )
    # Some editors start a file with a byte order mark, which would become a token.
    return text.removeprefix("\ufeff") if number == 1 else text


def write_sentences(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a file atomically."""
    try:
        write_file(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"{path}: cannot be written ({why}); choose another path") from error


def read_raw_lines(path: Path, tally: Tally | None = None) -> Iterator[bytes]:
    """Yield each line of a file with its newline. The last line may have none."""
    try:
        with _opened(path, tally) as stream:
            yield from stream
    except _DAMAGE as error:
        raise DataError(
            f"{path}: the {path.suffix} archive is damaged or truncated ({error}); "
            "download or create it again"
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def stored_size(path: Path) -> int | None:
    """Return a file's size on disk, or None for standard input and other pipes."""
    status = _status(path)
    return status and status.st_size


def modification_time(path: Path) -> int | None:
    """Return a file's modification time in nanoseconds, or None for pipes."""
    status = _status(path)
    return status and status.st_mtime_ns


def decode_line(line: bytes, path: Path, number: int) -> str:
    """Decode a line. The error names the first byte that is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        if number == 1:
            _reject_wide(line, path)
            _reject_archive(line, path)
        raise DataError(
            f"{describe(path)}, line {number}: byte {error.start + 1} (0x{line[error.start]:02x}) "
            "is not UTF-8; convert the file first, for instance with `iconv -f cp1252 -t utf-8` "
            "(`file -i` guesses the encoding for -f)"
        ) from error


def _reject_wide(first: bytes, path: Path) -> None:
    """Reject a file whose first line starts like UTF-16 ("Unicode" on Windows) or UTF-32."""
    for mark, encoding in _WIDE.items():
        if first.startswith(mark):
            raise DataError(
                f"{describe(path)}: its first bytes show {encoding}, not UTF-8; convert it "
                f"with `iconv -f {encoding} -t UTF-8`"
            )


def _reject_archive(first: bytes, path: Path) -> None:
    """Reject a compressed file without the matching suffix, and any bzip2 file."""
    if _BZIP2.match(first):
        raise DataError(
            f"{describe(path)}: its first bytes show an archive; decompress it with `bunzip2`"
        )
    for mark, suffix in _ARCHIVES.items():
        if first.startswith(mark):
            raise DataError(
                f"{describe(path)}: its first bytes show an archive; give it as a file whose "
                f"name ends in {suffix}"
            )


def describe(path: Path) -> str:
    """Return a file's name in messages."""
    return "standard input" if str(path) in ("-", "/dev/stdin") else str(path)


def _status(path: Path) -> os.stat_result | None:
    """Return the status of a regular file, or None for standard input and other pipes."""
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
    """Open a file for reading decompressed lines."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with _Counted(path, tally) as file, io.BufferedReader(file, _BUFFER) as stored:
        if path.suffix not in _DECOMPRESSORS:
            yield stored
            return
        if not stored.peek(1):
            raise EOFError("it is empty")
        # GzipFile and LZMAFile split lines in Python; a BufferedReader around them does so in C.
        with io.BufferedReader(_DECOMPRESSORS[path.suffix](stored), _BUFFER) as stream:
            yield stream


class _Counted(io.FileIO):
    """A file that counts the bytes read from it."""

    def __init__(self, path: Path, tally: Tally | None) -> None:
        super().__init__(path)
        self._tally = tally

    def readinto(self, buffer: "WriteableBuffer") -> int | None:
        n_bytes = super().readinto(buffer)
        if self._tally is not None and n_bytes:
            self._tally.add(n_bytes)
        return n_bytes


class _ZstandardFile(io.RawIOBase):
    """Decompresses all frames. Unlike zstandard's own reader, it detects a truncated file."""

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
        """Decompress the next block; return False at the end of the file."""
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
"""Suffixes of files that are decompressed when read."""
