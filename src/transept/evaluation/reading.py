"""Files that belong together line by line, and what is wrong with them if they do not."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from transept.errors import ConfigError, DataError
from transept.text.files import STANDARD_INPUT, describe, read_sentences
from transept.text.moses import Language

_STANDARD_INPUTS = (STANDARD_INPUT, Path("/dev/stdin"))


def read_aligned(paths: Sequence[Path], cure: str = "") -> list[list[str]]:
    """The lines of each file, plain or .gz, .xz, .zst. All must have equally many, at least one.

    Args:
        paths: The files.
        cure: Advice to add to the error if the numbers of lines differ.
    """
    if sum(path in _STANDARD_INPUTS for path in paths) > 1:
        raise ConfigError("standard input can be read once only; name a file for the others")
    texts = [_lines(path) for path in paths]
    if len({len(lines) for lines in texts}) > 1:
        counts = ", ".join(
            f"{describe(path)} has {len(lines):,}" for path, lines in zip(paths, texts, strict=True)
        )
        raise DataError(
            f"the numbers of lines differ: {counts}; each line must be the same sentence in all"
            + cure
        )
    return texts


def language_of(path: Path) -> Language:
    """The language that a file's name ends in: `de` for test.de and test.de.gz."""
    languages: dict[str, Language] = {f".{name}": name for name in get_args(Language)}
    named = (languages[suffix] for suffix in reversed(path.suffixes) if suffix in languages)
    return next(named, "other")


def _lines(path: Path) -> list[str]:
    lines = list(read_sentences(path))
    if not lines:
        raise DataError(f"{describe(path)}: is empty; there is nothing to score")
    return lines
