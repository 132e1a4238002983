"""Lines of text from arguments, files or standard input, as commands read them."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

from cyclopts import Parameter

from transept.cli.app import DASH
from transept.errors import ConfigError, DataError
from transept.text.files import COMPRESSED, STANDARD_INPUT, describe, read_sentences, stored_size

if TYPE_CHECKING:
    from transept.api.texts import TooLongError

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
    """A line of text, and where it stands."""

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
    """How many lines there are, if that can be known before they are read.

    Files are read through once, so that one that is missing or no text is refused before anything
    is done.
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
        raise ConfigError(f"{path}: would be read as plain text, a sentence a line; {cure}")


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


def told_too_long(place: str, error: "TooLongError") -> DataError:
    """The error that a sentence is too long to be translated, with the options that help."""
    cure = "--too-long split cuts it"
    if error.enough is not None:
        cure += f", --max-source-length {error.enough} translates it whole"
    return DataError(f"{place}: {error.what}; {cure}")
