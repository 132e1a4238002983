"""Read lines of text for commands, and write them for `transept translate --stream`."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from cyclopts import Parameter

from transept.api.config import Format
from transept.cli.app import DASH, complain
from transept.documents.opening import SUFFIXES, FileFormat
from transept.errors import ConfigError, DataError, TooLongError
from transept.text.files import (
    COMPRESSED,
    STANDARD_INPUT,
    describe,
    read_document,
    read_sentences,
    stored_size,
)

if TYPE_CHECKING:
    from transept.api.texts import Draft

T = TypeVar("T")
Files = Annotated[
    tuple[Path, ...],
    Parameter(
        name=["--input", "-i"],
        consume_multiple=True,
        json_list=False,
        negative="",
        show_default=False,
    ),
]

OTHER_DOCUMENTS = frozenset({".doc", ".ods", ".pdf", ".ppt", ".rtf", ".xls"})
"""The suffixes of files that are neither text nor of a supported format."""
FIRST_LINES = 32
"""The size of the first group of lines. It is small, so that results appear early."""


class Line(NamedTuple):
    """A line of text or a document, and its location for messages."""

    text: str
    place: str


def without_dash(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts, or () if the only one is `-` (standard input)."""
    if DASH in texts and len(texts) > 1:
        raise ConfigError("`-` (standard input) cannot be combined with other texts")
    return () if DASH in texts else texts


def format_of(files: Sequence[Path]) -> FileFormat:
    """The format of files by their names, without the suffix of a compressed file."""
    bare = [path.with_suffix("") if path.suffix in COMPRESSED else path for path in files]
    for path in bare:
        if path.suffix.lower() in OTHER_DOCUMENTS:
            raise ConfigError(
                f"{path}: {path.suffix} files cannot be translated; the formats are "
                f"{', '.join(SUFFIXES)}, and other names mean text"
            )
    found: set[FileFormat] = {SUFFIXES.get(path.suffix.lower(), "text") for path in bare}
    if len(found) > 1:
        raise ConfigError(
            f"--input: the files have different formats ({', '.join(sorted(found))}); "
            "give --format, or translate them separately"
        )
    return found.pop() if found else "text"


def read(texts: Sequence[str], files: Sequence[Path], format: Format = "text") -> Iterator[Line]:
    """Read lines from the arguments, else from files, else from standard input.

    If the format is not `text`, a whole argument or file is one item.
    """
    if format != "text":
        yield from (Line(f"{text}\n", f"text {n}") for n, text in enumerate(texts, start=1))
        for path in () if texts else files or (STANDARD_INPUT,):
            yield Line(read_document(path), describe(path))
        return
    if texts:
        # An argument may have several lines.
        lines = [line for text in texts for line in text.split("\n")]
        yield from (Line(line, f"text {number}") for number, line in enumerate(lines, start=1))
        return
    for path in files or (STANDARD_INPUT,):
        for number, line in enumerate(read_sentences(path), start=1):
            yield Line(line, f"{describe(path)}, line {number}")


def count(texts: Sequence[str], files: Sequence[Path], format: Format = "text") -> int | None:
    """The number of items of `read`, or None if the input can be read only once.

    Files are read to the end, so a file that is missing or not text is rejected before any work is
    done.
    """
    if texts:
        return sum(1 for _ in read(texts, (), format))
    if not files or any(stored_size(path) is None for path in files):
        return None
    return sum(1 for _ in read((), files, format))


def check_plain(path: Path, cure: str) -> None:
    """Reject formats such as TSV, whose tabs and braces would be learnt as words.

    Args:
        path: The file.
        cure: Advice for the error message, with `{}` for the name of the format.
    """
    bare = path.with_suffix("") if path.suffix in COMPRESSED else path
    if bare.suffix in (".tsv", ".jsonl", ".tmx"):
        cure = cure.format(bare.suffix[1:])
        raise ConfigError(f"{path}: is not plain text with one sentence per line; {cure}")


def check_uncompressed(output: Path) -> None:
    """Reject a name such as `x.gz`: the output is not compressed."""
    if output.suffix in COMPRESSED:
        raise ConfigError(f"--output {output}: the output is not compressed; omit {output.suffix}")


def growing_groups(lines: Iterator[T], read_ahead: int) -> Iterator[list[T]]:
    """Group lines. The first group is small, so that results appear early. Later ones double."""
    n_lines = min(FIRST_LINES, read_ahead)
    while some := list(islice(lines, n_lines)):
        yield some
        n_lines = min(2 * n_lines, read_ahead)


@contextmanager
def naming_lines(place: Callable[[int], str]) -> Iterator[None]:
    """Add the line and helpful options to the error for a sentence that is too long.

    Args:
        place: Returns the location of a line, given its number from 1.
    """
    try:
        yield
    except TooLongError as error:
        cure = "--too-long split splits it"
        if error.enough is not None:
            cure += f", --max-source-length {error.enough} translates it unsplit"
        raise DataError(f"{place(error.number)}: {error.what}; {cure}") from error


def warn_if_split(place: str, lengths: Sequence[int]) -> None:
    """Warn about the sentences of a line that had too many tokens, given their lengths."""
    if lengths:
        what = "a sentence" if len(lengths) == 1 else "sentences"
        listed = ", ".join(f"{length:,}" for length in lengths)
        cure = "see --too-long and --max-source-length"
        complain(f"warning: {place}: split {what} of {listed} tokens; {cure}")


# --- streaming -------------------------------------------------------------------------------

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""Ends a draft if some bytes of its last character are still missing."""
_DIM, _PLAIN, _ERASE_TO_END = "\x1b[2m", "\x1b[22m", "\x1b[K"


class DraftPrinter:
    """Prints a translation to standard output while it is decoded.

    A pipe receives only the stable part. A terminal also shows the part that may still change,
    dimmed. This part is truncated at the end of the terminal's line: on the next line it could not
    be overwritten after the screen has scrolled.
    """

    def __init__(self) -> None:
        from shutil import get_terminal_size

        self._width = get_terminal_size().columns if sys.stdout.isatty() else None
        self._column, self._dim = 0, 0

    def write(self, drafts: "Iterable[Draft]") -> tuple[str, ...]:
        """Print the drafts of one translation until it is complete. Return its missing terms."""
        written = 0
        missing: tuple[str, ...] = ()
        for draft in drafts:
            # A model can write any byte, but the output must stay on one line.
            text = draft.text.replace("\n", " ")
            stable = text[: draft.stable].rstrip(_INCOMPLETE)
            self._show(stable[written:], text[max(written, len(stable)) :].rstrip(_INCOMPLETE))
            written, missing = max(written, len(stable)), draft.missing
        self._put("\n" if self._width is None else f"{self._back()}{_ERASE_TO_END}\n")
        self._column = self._dim = 0
        return missing

    def _show(self, stable: str, rest: str) -> None:
        if self._width is None:
            self._put(stable)
            return
        from rich.cells import cell_len, set_cell_size

        self._column = (self._column + cell_len(stable)) % self._width
        room = self._width - self._column - 1
        shown = rest if cell_len(rest) <= room else set_cell_size(rest, room)
        self._put(f"{self._back()}{stable}{_ERASE_TO_END}{_DIM}{shown}{_PLAIN}")
        self._dim = cell_len(shown)

    def _back(self) -> str:
        return f"\x1b[{self._dim}D" if self._dim else ""

    def _put(self, text: str) -> None:
        if text:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
