"""The formats of parallel text: pairs of files, TSV, JSONL, TMX; compressed or not.

Reading is split in two, so that the work can be: `chunks` cuts the inputs into pieces of raw
lines, which is all that must happen in order; an input's `sentences` turns the lines of a chunk
into the two sides and may run in another process.
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
"""A line number, and what stands there: one column, or a column for each side."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """The two sides of some rows, and what is wrong with the rows that have none."""

    source: list[str]
    target: list[str]
    malformed: dict[int, str]


class CorpusInput(Protocol):
    """Files of one format. It is sent to worker processes as a whole."""

    format: ClassVar[str]
    """What the manifest calls it."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order of the columns."""

    @property
    def options(self) -> tuple[str, ...]:
        """What else decides how they are read."""

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """What must be read in order. No row holds a line break."""

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """What may be done in any process: the two sides of some rows, given by column."""


@dataclass(frozen=True, slots=True)
class LinePair:
    """Two files of which line n of one is the translation of line n of the other (Moses)."""

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
        """The lines of both."""
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
            f"{self.source} has {counts[0]:,} lines and {self.target} has {counts[1]:,}: line by "
            "line they cannot be translations of each other; align them first"
        )

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Each line is a sentence."""
        return Sentences(columns[0], columns[1], {})


@dataclass(frozen=True, slots=True)
class _OneFile:
    """What is common to formats that have both sides in one file."""

    path: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """The lines."""
        lines = _lines(self.path, tally)
        return ((number, (line,)) for number, line in enumerate(lines, start=1))


@dataclass(frozen=True, slots=True)
class Tsv(_OneFile):
    """Lines of columns with a tab between them; `columns` (from 1) hold source and target."""

    columns: tuple[int, int] = (1, 2)
    format: ClassVar[str] = "tsv"

    @property
    def options(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(map(str, self.columns))

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Two of the columns of each line."""
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
    """A JSON object a line; `keys` name the sides, with dots into objects: `translation.en`."""

    keys: tuple[str, str] = ("source", "target")
    format: ClassVar[str] = "jsonl"

    @property
    def options(self) -> tuple[str, ...]:
        """The keys."""
        return self.keys

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Two of the values of each object."""
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
    """A translation memory, of which two languages are taken."""

    languages: tuple[str, str]
    format: ClassVar[str] = "tmx"

    @property
    def options(self) -> tuple[str, ...]:
        """The languages."""
        return self.languages

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """The units, each under the line on which it begins."""
        blocks = read_raw_lines(self.path, tally)
        for unit in read_units(blocks, self.languages, describe(self.path)):
            yield unit.line, (unit.source.encode(), unit.target.encode())

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Each segment is a sentence."""
        return Sentences(columns[0], columns[1], {})


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive rows of one input, as raw as they were read.

    Where chunks begin and end follows from the input alone, so that their numbers can serve as
    positions in it.
    """

    input: int
    lines: NDArray[np.int64]
    columns: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.lines)

    def checksum(self, start: int) -> int:
        """The checksum of all text up to here, given the one before this chunk."""
        for column in self.columns:
            start = zlib.crc32(column, start)
        return start


class Checksums:
    """One for each column of each input, the same however they are cut into chunks."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], int] = {}

    def add(self, chunk: Chunk) -> None:
        """Count in the next chunk of the text."""
        for number, column in enumerate(chunk.columns):
            key = (chunk.input, number)
            self._found[key] = zlib.crc32(b"\n", zlib.crc32(column, self._found.get(key, 0)))

    @property
    def found(self) -> tuple[int, ...]:
        """Those of all text so far."""
        return tuple(self._found.values())


def chunks(inputs: Sequence[CorpusInput], tally: Tally | None = None) -> Iterator[Chunk]:
    """All rows of all inputs, in order."""
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
    """The text under a dotted key of a parsed line, on one line."""
    value = record
    for name in key.split("."):
        if not isinstance(value, dict) or name not in value:
            raise ValueError(f"no key {key!r}")
        value = value[name]
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is no text")
    value.encode("utf-8")  # an escaped lone surrogate (\ud800) is not Unicode text
    return value.replace("\n", " ")
