"""Lines of text: as commands read them, and as `transept translate --stream` writes them."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from cyclopts import Parameter

from transept.cli.app import DASH
from transept.errors import ConfigError, DataError
from transept.text.files import COMPRESSED, STANDARD_INPUT, describe, read_sentences, stored_size

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

FIRST_LINES = 32
"""How many lines are read at first, so that results come soon; later, more at a time."""


class Line(NamedTuple):
    """A line of text, and its place for messages."""

    text: str
    place: str


def without_dash(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts; none where the only one is `-`, which stands for standard input."""
    if DASH in texts and len(texts) > 1:
        raise ConfigError("`-` among the texts is standard input: give it alone")
    return () if DASH in texts else texts


def read(texts: Sequence[str], files: Sequence[Path]) -> Iterator[Line]:
    """The lines of arguments, else of files, else of standard input."""
    if texts:
        # An argument of several lines is several lines.
        lines = [line for text in texts for line in text.split("\n")]
        yield from (Line(line, f"text {number}") for number, line in enumerate(lines, start=1))
        return
    for path in files or (STANDARD_INPUT,):
        for number, line in enumerate(read_sentences(path), start=1):
            yield Line(line, f"{describe(path)}, line {number}")


def count(texts: Sequence[str], files: Sequence[Path]) -> int | None:
    """The number of lines, if it can be known before they are read.

    Files are read once to the end, so that one that is missing or not text is refused before any
    work.
    """
    if texts:
        return sum(1 for _ in read(texts, ()))
    if not files or any(stored_size(path) is None for path in files):
        return None
    return sum(1 for _ in read((), files))


def check_plain(path: Path, cure: str) -> None:
    """Refuse a TSV and the like: its tabs and braces would be learnt as words.

    Args:
        path: The file.
        cure: What to do, with a place for the name of its format.
    """
    bare = path.with_suffix("") if path.suffix in COMPRESSED else path
    if bare.suffix in (".tsv", ".jsonl", ".tmx"):
        cure = cure.format(bare.suffix[1:])
        raise ConfigError(f"{path}: would be read as plain text, one sentence per line; {cure}")


def check_uncompressed(output: Path) -> None:
    """Refuse a name such as `x.gz`: plain text in it would be taken for compressed text later."""
    if output.suffix in COMPRESSED:
        raise ConfigError(
            f"--output {output}: what is written is not compressed; leave {output.suffix} out"
        )


def in_turn(lines: Iterator[T], read_ahead: int) -> Iterator[list[T]]:
    """Group the lines: a few at first, so that results come soon; then more and more at a time."""
    n_lines = min(FIRST_LINES, read_ahead)
    while some := list(islice(lines, n_lines)):
        yield some
        n_lines = min(2 * n_lines, read_ahead)


@contextmanager
def naming_lines(place: Callable[[int], str]) -> Iterator[None]:
    """Name the line of a sentence that is too long to be translated, and the options that help.

    Args:
        place: The place of a line, by its number from 1.
    """
    from transept.api.texts import TooLongError

    try:
        yield
    except TooLongError as error:
        cure = "--too-long split cuts it"
        if error.enough is not None:
            cure += f", --max-source-length {error.enough} translates it whole"
        raise DataError(f"{place(error.number)}: {error.what}; {cure}") from error


# --- translations while they grow ------------------------------------------------------------

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""At the end of a draft: a character of which some bytes are still missing."""
_DIM, _PLAIN, _ERASE_TO_END = "\x1b[2m", "\x1b[22m", "\x1b[K"


class Page:
    """Standard output, on which a translation grows.

    A pipe is given only what is certain. A terminal also shows in dim letters what may still
    change. That is cut where the terminal's line ends: on another line it could not be overwritten
    once the screen has scrolled.
    """

    def __init__(self) -> None:
        from shutil import get_terminal_size

        self._width = get_terminal_size().columns if sys.stdout.isatty() else None
        self._column, self._dim = 0, 0

    def write(self, drafts: "Iterable[Draft]") -> None:
        """Follow a translation until it is whole."""
        written = 0
        for draft in drafts:
            # A model can spell any byte, and a line must stay a line.
            text = draft.text.replace("\n", " ")
            sure = text[: draft.stable].rstrip(_UNFINISHED)
            self._show(sure[written:], text[max(written, len(sure)) :].rstrip(_UNFINISHED))
            written = max(written, len(sure))
        self._put("\n" if self._width is None else f"{self._back()}{_ERASE_TO_END}\n")
        self._column = self._dim = 0

    def _show(self, sure: str, rest: str) -> None:
        if self._width is None:
            self._put(sure)
            return
        from rich.cells import cell_len, set_cell_size

        self._column = (self._column + cell_len(sure)) % self._width
        room = self._width - self._column - 1
        shown = rest if cell_len(rest) <= room else set_cell_size(rest, room)
        self._put(f"{self._back()}{sure}{_ERASE_TO_END}{_DIM}{shown}{_PLAIN}")
        self._dim = cell_len(shown)

    def _back(self) -> str:
        return f"\x1b[{self._dim}D" if self._dim else ""

    def _put(self, text: str) -> None:
        if text:
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()
