"""A directory in pieces of a given size, and together again: for when only small files can move.

    NAME.pieces.json              the size and sha256 of every piece, and of every file in them
    NAME.0001-of-0004.piece  …    a tar archive, compressed where that helps, cut into pieces

The list may travel with any of the pieces. Whoever puts them together is told which are missing
and which are damaged, and either gets all of the directory as it was, or none of it.
"""

import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast

import zstandard

from transept.errors import DataError
from transept.runtime.storage import Stored, flush, new_directory, write_json
from transept.wording import counted

SUFFIX: Final = ".pieces.json"
FORMAT: Final = 1
BLOCK: Final = 1 << 20
SAMPLE: Final = 8 << 20
"""Bytes that are compressed to see whether it helps."""
WORTH_IT: Final = 0.97
"""Compression helps if these bytes shrink to less than this share."""
ZSTD_LEVEL: Final = 12

Compression = Literal["auto", "none", "zstd", "xz"]
Watch = Callable[[int, int], None]
"""Told how many bytes of how many are done."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What `NAME.pieces.json` says."""

    name: str
    compression: str
    pieces: Mapping[str, Stored]
    files: Mapping[str, Stored]

    def save(self, directory: Path) -> Path:
        """Write it."""
        path = directory / f"{self.name}{SUFFIX}"
        write_json(path, {"format": FORMAT, **asdict(self)})
        return path

    @classmethod
    def load(cls, path: Path) -> "Listing":
        """Read it, or say what is wrong."""
        try:
            table = json.loads(path.read_bytes())
            stored = {
                key: {name: Stored(**value) for name, value in table[key].items()}
                for key in ("pieces", "files")
            }
            if table["format"] != FORMAT:
                raise ValueError(f"format {table['format']}")
            return cls(table["name"], table["compression"], **stored)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: is no list of pieces ({error}); copy it again") from error


# --- splitting -------------------------------------------------------------------------------


def split(
    directory: Path,
    output: Path,
    *,
    size: int,
    compression: Compression = "auto",
    name: str | None = None,
    watch: Watch | None = None,
) -> Listing:
    """Write a directory as pieces of at most `size` bytes.

    Args:
        directory: What to split. It stays as it is.
        output: Where the pieces go; what an earlier split left there under the name is replaced.
        size: Bytes of the largest piece.
        compression: `auto` is zstd where a sample shrinks by it, else none; xz is slow and small.
        name: What the pieces are called; unless given, the name of the directory.
        watch: Told how many bytes are done.
    """
    if not directory.is_dir():
        raise DataError(f"{directory}: is no directory; there is nothing to split")
    name = name or directory.resolve().name
    paths = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    if not paths:
        raise DataError(f"{directory}: holds no file; there is nothing to split")
    if output.resolve().is_relative_to(directory.resolve()):
        raise DataError(
            f"{output}: lies in {directory}, so that the next pieces would hold these; choose "
            "another --output"
        )
    files = {path.relative_to(directory).as_posix(): Stored.of(path) for path in paths}
    chosen = _choose(paths) if compression == "auto" else compression
    total = sum(stored.bytes for stored in files.values())
    try:
        _clear(output, name)
        writer = _PieceWriter(output, name, size)
        with _compressing(chosen, writer) as stream:
            _pack(directory, list(files), stream, lambda done: watch and watch(done, total))
        listing = Listing(name, chosen, writer.finish(), files)
        listing.save(output)
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error}); make room, or choose another --output"
        ) from error
    return listing


def _clear(output: Path, name: str) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for old in (*output.glob(f"{name}.*.piece"), output / f"{name}{SUFFIX}"):
        old.unlink(missing_ok=True)


def _choose(paths: Sequence[Path]) -> str:
    """`zstd` if it shrinks a sample of the largest file enough, else `none`."""
    largest = max(paths, key=lambda path: path.stat().st_size)
    with largest.open("rb") as file:
        file.seek(max(0, largest.stat().st_size - SAMPLE) // 2)
        sample = file.read(SAMPLE)
    packed = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(sample)
    return "zstd" if len(packed) < WORTH_IT * len(sample) else "none"


def _compressing(kind: str, raw: io.RawIOBase) -> Any:
    """A stream that compresses what is written to it into another, and leaves that open."""
    if kind == "zstd":
        packer = zstandard.ZstdCompressor(level=ZSTD_LEVEL, threads=-1)
        return packer.stream_writer(cast(BinaryIO, raw), closefd=False)
    if kind == "xz":
        return lzma.LZMAFile(cast(BinaryIO, raw), "wb", preset=6)
    return _Open(raw)


def _pack(
    directory: Path, names: Iterable[str], stream: BinaryIO, tell: Callable[[int], object]
) -> None:
    """A tar archive without owners and times: the same files make the same bytes."""
    done = 0
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            path = directory / name
            entry = tarfile.TarInfo(name)
            entry.size = path.stat().st_size
            with _Told(path, done, tell) as file:
                archive.addfile(entry, file)
            done += entry.size


class _Told(io.BufferedReader):
    """A file that tells how many bytes were read, those of the files before it included."""

    def __init__(self, path: Path, before: int, tell: Callable[[int], object]) -> None:
        super().__init__(io.FileIO(path), BLOCK)
        self._before, self._tell = before, tell

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._tell(self._before + self.tell())
        return data


class _PieceWriter(io.RawIOBase):
    """A stream that begins a new file whenever one is full."""

    def __init__(self, output: Path, name: str, size: int) -> None:
        self._output, self._name, self._size = output, name, size
        self._parts: list[tuple[Path, int, str]] = []
        self._file: BinaryIO | None = None
        self._left = 0
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        total = len(view)
        while len(view):
            if self._file is None:
                self._open()
            assert self._file is not None
            now, view = view[: self._left], view[self._left :]
            self._file.write(now)
            self._hash.update(now)
            self._left -= len(now)
            if self._left == 0:
                self._end()
        return total

    def finish(self) -> dict[str, Stored]:
        """Close the last piece, and name all by their number."""
        self._end()
        pieces = {}
        for number, (path, size, digest) in enumerate(self._parts, start=1):
            final = f"{self._name}.{number:04d}-of-{len(self._parts):04d}.piece"
            path.replace(self._output / final)
            pieces[final] = Stored(size, digest)
        return pieces

    def _open(self) -> None:
        path = self._output / f"{self._name}.{len(self._parts) + 1:04d}.piece"
        self._file, self._left = path.open("wb"), self._size
        self._hash = hashlib.sha256()

    def _end(self) -> None:
        if self._file is not None:
            path = Path(self._file.name)
            self._file.close()
            self._file = None
            flush(path)
            self._parts.append((path, self._size - self._left, self._hash.hexdigest()))


# --- joining ---------------------------------------------------------------------------------


def join(places: Sequence[Path], output: Path, *, watch: Watch | None = None) -> Listing:
    """Put pieces together again.

    Args:
        places: The directories in which the pieces and their list lie; or these files themselves.
        output: The directory to make.
        watch: Told how many bytes are done.
    """
    if output.exists() and any(output.iterdir()):
        raise DataError(f"{output}: is there already; choose another --output")
    found = _find(places)
    listing = _listing(found)
    pieces = _all_of(listing, found)
    total = sum(stored.bytes for stored in listing.pieces.values())
    try:
        with new_directory(output) as part:
            _unpack(listing, _chain(pieces, total, watch), part)
            _verify(listing, part)
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error}); make room, or choose another --output"
        ) from error
    return listing


def _find(places: Sequence[Path]) -> dict[str, Path]:
    """Lists and pieces by their names, wherever they lie."""
    found: dict[str, Path] = {}
    for place in places:
        if not place.exists():
            raise DataError(f"{place}: is not there; give the directories that hold the pieces")
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.name.endswith((SUFFIX, ".piece")):
                found.setdefault(path.name, path)
    return found


def _listing(found: Mapping[str, Path]) -> Listing:
    lists = [path for name, path in found.items() if name.endswith(SUFFIX)]
    if len(lists) != 1:
        what = "no list of pieces" if not lists else f"{len(lists)} lists of pieces"
        names = "".join(f"\n  {path}" for path in lists)
        raise DataError(f"found {what}: give the one {SUFFIX} that was made with them{names}")
    return Listing.load(lists[0])


def _all_of(listing: Listing, found: Mapping[str, Path]) -> list[Path]:
    """The pieces in order, each of them whole."""
    wrong = []
    for name, stored in listing.pieces.items():
        if name not in found:
            wrong.append(f"{name}: missing")
        elif Stored.of(found[name]) != stored:
            wrong.append(f"{found[name]}: damaged: its sha256 is not the one that is listed")
    if wrong:
        n = len(listing.pieces)
        listed = "\n  ".join(wrong)
        raise DataError(f"{len(wrong)} of {counted(n, 'piece')} must be copied again:\n  {listed}")
    return [found[name] for name in listing.pieces]


def _chain(pieces: Sequence[Path], total: int, watch: Watch | None) -> Iterator[bytes]:
    done = 0
    for path in pieces:
        with path.open("rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                done += len(block)
                if watch is not None:
                    watch(done, total)
                yield block


def _unpack(listing: Listing, blocks: Iterator[bytes], part: Path) -> None:
    """Unpack the files. One that is not listed is refused, so none can leave the directory."""
    raw = io.BufferedReader(_Blocks(blocks), BLOCK)
    stream: Any = raw
    if listing.compression == "zstd":
        stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    elif listing.compression == "xz":
        stream = lzma.LZMAFile(raw)  # noqa: SIM115  (closed with its pieces)
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                if entry.name not in listing.files or not entry.isreg():
                    raise DataError(f"the pieces hold {entry.name}, which is not listed")
                archive.extract(entry, part, filter="data")
    except (tarfile.TarError, zstandard.ZstdError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"the pieces cannot be unpacked ({error}); split again") from error


def _verify(listing: Listing, part: Path) -> None:
    for name, stored in listing.files.items():
        path = part / name
        if not path.exists() or Stored.of(path) != stored:
            raise DataError(f"{name}: is not what it was before it was split; split again")


class _Blocks(io.RawIOBase):
    """A stream of blocks."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._blocks, b""))
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n


class _Open:
    """A stream that stays open when whoever writes to it is done."""

    def __init__(self, raw: io.RawIOBase) -> None:
        self._raw = raw

    def __enter__(self) -> io.RawIOBase:
        return self._raw

    def __exit__(self, *error: object) -> None:
        pass
