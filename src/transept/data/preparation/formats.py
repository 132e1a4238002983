"""Formats of parallel text: pairs of files, TSV, JSONL and TMX, compressed or not.

Reading has two steps, so that it can be parallel. `chunks` cuts the inputs into chunks of raw
lines, in order. An input's `sentences` turns the lines of a chunk into the two sides, and may run
in another process.
"""

import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from transept.data.preparation.tmx import read_units
from transept.errors import DataError
from transept.progress import Tally
from transept.text.files import describe, read_lines, read_raw_lines

CHUNK_ROWS = 2048
CHUNK_BYTES = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Row = tuple[int, tuple[bytes, ...]]
"""A line number and its content: one column, or one column per side."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """The two sides of some rows, and the errors of malformed rows."""

    source: list[str]
    target: list[str]
    malformed: dict[int, str]


class CorpusInput(Protocol):
    """Files of one format. Picklable, to be sent to worker processes."""

    format: ClassVar[str]
    """The name of the format in the manifest."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order of the columns."""

    @property
    def options(self) -> tuple[str, ...]:
        """Further options that control how the files are read."""

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """Yield the rows in order. No row contains a line break."""

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Return the two sides of some rows, given by column. Runs in any process."""


@dataclass(frozen=True, slots=True)
class LinePair:
    """Two files, where line n of one is the translation of line n of the other (Moses)."""

    source: Path
    target: Path
    format: ClassVar[str] = "lines"

    @property
    def options(self) -> tuple[str, ...]:
        """None."""
        return ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order of the columns."""
        return self.source, self.target

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """Yield the lines of both files."""
        sources, targets = (_lines(path, tally) for path in self.paths)
        together = itertools.zip_longest(sources, targets)
        for number, (source, target) in enumerate(together, start=1):
            if source is None or target is None:
                rest = sum(1 for _ in (targets if source is None else sources))
                counts = (number - 1, number + rest)
                raise self._uneven(counts if source is None else counts[::-1])
            yield number, (source, target)

    def _uneven(self, counts: tuple[int, ...]) -> DataError:
        return DataError(
            f"{self.source} has {counts[0]:,} lines and {self.target} has {counts[1]:,}: they "
            "cannot be line-by-line translations of each other; align them first"
        )

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Each line is a sentence."""
        return Sentences(columns[0], columns[1], {})


@dataclass(frozen=True, slots=True)
class _OneFile:
    """Base class of formats with both sides in one file."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """Yield the lines."""
        lines = _lines(self.path, tally)
        return ((number, (line,)) for number, line in enumerate(lines, start=1))


@dataclass(frozen=True, slots=True)
class Tsv(_OneFile):
    """Lines of tab-separated columns; `columns` (from 1) hold source and target."""

    columns: tuple[int, int] = (1, 2)
    format: ClassVar[str] = "tsv"

    @property
    def options(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(map(str, self.columns))

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Return two of the columns of each line."""
        source, target = self.columns
        needed = max(self.columns)
        found = Sentences([], [], {})
        for row, line in enumerate(columns[0]):
            cells = line.split("\t")
            if len(cells) < needed:
                found.malformed[row] = f"{len(cells)} of {needed} columns"
                cells = [""] * needed
            found.source.append(cells[source - 1])
            found.target.append(cells[target - 1])
        return found


@dataclass(frozen=True, slots=True)
class Jsonl(_OneFile):
    """One JSON object per line; `keys` name the sides, with dots for nesting: `translation.en`."""

    keys: tuple[str, str] = ("source", "target")
    format: ClassVar[str] = "jsonl"

    @property
    def options(self) -> tuple[str, ...]:
        """The keys."""
        return self.keys

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Return two of the values of each object."""
        found = Sentences([], [], {})
        for row, line in enumerate(columns[0]):
            try:
                record = json.loads(line)
                source, target = (_lookup(record, key) for key in self.keys)
            except (ValueError, RecursionError) as error:
                found.malformed[row] = str(error) or type(error).__name__
                source = target = ""
            found.source.append(source)
            found.target.append(target)
        return found


@dataclass(frozen=True, slots=True)
class Tmx(_OneFile):
    """A translation memory, of which two languages are read."""

    languages: tuple[str, str]
    format: ClassVar[str] = "tmx"

    @property
    def options(self) -> tuple[str, ...]:
        """The languages."""
        return self.languages

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """Yield the units, each with the line on which it begins."""
        blocks = read_raw_lines(self.path, tally)
        for unit in read_units(blocks, self.languages, describe(self.path)):
            yield unit.line, (unit.source.encode(), unit.target.encode())

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Each segment is a sentence."""
        return Sentences(columns[0], columns[1], {})


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive raw rows of one input.

    Chunk boundaries depend on the input alone, so chunk numbers can serve as positions in it.
    """

    input: int
    lines: NDArray[np.int64]
    columns: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.lines)

    def checksum(self, start: int) -> int:
        """Return the checksum of all text up to here, given the one before this chunk."""
        for column in self.columns:
            start = zlib.crc32(column, start)
        return start


class Checksums:
    """One checksum per column of each input, independent of chunk boundaries."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], int] = {}

    def add(self, chunk: Chunk) -> None:
        """Add the next chunk of the text."""
        for number, column in enumerate(chunk.columns):
            key = (chunk.input, number)
            self._found[key] = zlib.crc32(b"\n", zlib.crc32(column, self._found.get(key, 0)))

    @property
    def found(self) -> tuple[int, ...]:
        """The checksums of all text so far."""
        return tuple(self._found.values())


def chunks(inputs: Sequence[CorpusInput], tally: Tally | None = None) -> Iterator[Chunk]:
    """Yield all rows of all inputs in order, as chunks."""
    for index, source in enumerate(inputs):
        rows: list[Row] = []
        size = 0
        for row in source.rows(tally):
            rows.append(row)
            size += sum(map(len, row[1]))
            if len(rows) == CHUNK_ROWS or size >= CHUNK_BYTES:
                yield _chunk(index, rows)
                rows, size = [], 0
        if rows:
            yield _chunk(index, rows)


def _chunk(index: int, rows: list[Row]) -> Chunk:
    numbers, records = zip(*rows, strict=True)
    columns = tuple(b"\n".join(column) for column in zip(*records, strict=True))
    return Chunk(index, np.array(numbers, dtype=np.int64), columns)


def _lines(path: Path, tally: Tally | None) -> Iterator[bytes]:
    lines = read_lines(path, tally)
    for first in lines:
        yield first.removeprefix(BYTE_ORDER_MARK)
        break
    yield from lines


def _lookup(record: Any, key: str) -> str:
    """Return the text of a dotted key in a parsed line, without line breaks."""
    value = record
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            raise ValueError(f"no key {key!r}")
        value = value[name]
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is not a string")
    value.encode("utf-8")  # an escaped lone surrogate (\ud800) is not Unicode text
    return value.replace("\n", " ")
