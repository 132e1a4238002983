"""Files of documents, from one path to another."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transept.documents.opening import FileFormat, OpenedFile, open_file
from transept.errors import Argument, ConfigError, DataError
from transept.runtime.storage import write_file
from transept.text.files import STANDARD_INPUT, describe, read_raw_lines

if TYPE_CHECKING:
    from transept.api.texts import Translation


def read_file(path: Path, format: FileFormat | None = None) -> OpenedFile:
    """Read a file, plain or compressed, and find its texts."""
    return open_file(b"".join(read_raw_lines(path)), describe(path), format)


def check_output(source: Path, output: Path) -> None:
    """Reject an output that would overwrite the input, or that cannot be written."""
    if not output.parent.is_dir():
        raise DataError(f"{output}: its directory does not exist; create it or choose another path")
    if source != STANDARD_INPUT and output.exists() and output.samefile(source):
        raise ConfigError(f"{output}: is the input; choose another ", Argument("output"))


def translate_texts(
    opened: OpenedFile, translate: "Callable[[list[str]], Sequence[Translation]]"
) -> "list[Translation]":
    """The translation of each text of a file. Equal texts are translated once."""
    distinct = [*dict.fromkeys(opened.texts)]
    found = dict(zip(distinct, translate(distinct), strict=True))
    return [found[text] for text in opened.texts]


def write_translations(
    opened: OpenedFile, texts: Sequence[str], output: Path, language: str
) -> None:
    """Write a file with the translations of its texts into a language. Empty if it is unknown."""
    try:
        write_file(output, opened.translated(texts, language))
    except OSError as error:
        why = error.strerror or error
        raise DataError(f"{output}: cannot be written ({why}); choose another path") from error
