"""Read line-aligned files, and detect common mistakes that make a score meaningless.

The checks are cheap and coarse. They compare shares of lines, so a few unusual sentences do not
cause a warning.
"""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

from transept.errors import ConfigError, DataError
from transept.text.files import STANDARD_INPUT, describe, read_sentences
from transept.text.moses import Language

_STANDARD_INPUTS = (STANDARD_INPUT, Path("/dev/stdin"))
MANY, FEW = 0.5, 0.1
"""A property is common in a text above the share MANY of its lines, and rare below FEW."""
FEW_SENTENCES = 100

# Only full stop and comma: French has a space before ! ? : ; in plain text too.
_LOOSE = re.compile(r"\s[.,](?:\s|$)")
_TIED = re.compile(r"\w[.,](?:\s|$)")
_SUBWORD_MARK = re.compile(r"@@(?:\s|$)|▁")


def read_aligned(paths: Sequence[Path], cure: str = "") -> list[list[str]]:
    """Read files, plain or compressed (.gz, .xz, .zst), with the same number of lines.

    Args:
        paths: The files. An empty file is an error.
        cure: Advice to append to the error if the numbers of lines differ.
    """
    if sum(path in _STANDARD_INPUTS for path in paths) > 1:
        raise ConfigError("standard input can be read only once; give files for the others")
    texts = [_lines(path) for path in paths]
    if len({len(lines) for lines in texts}) > 1:
        counts = ", ".join(
            f"{describe(path)} has {len(lines):,}" for path, lines in zip(paths, texts, strict=True)
        )
        raise DataError(
            f"the numbers of lines differ: {counts}; the files must be aligned line by line" + cure
        )
    return texts


def language_of(path: Path) -> Language:
    """The language in a file's suffix: `de` for test.de and test.de.gz."""
    languages: dict[str, Language] = {f".{name}": name for name in get_args(Language)}
    named = (languages[suffix] for suffix in reversed(path.suffixes) if suffix in languages)
    return next(named, "other")


def _lines(path: Path) -> list[str]:
    lines = list(read_sentences(path))
    if not lines:
        raise DataError(f"{describe(path)}: is empty")
    return lines


def suspect(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[str, ...]:
    """Warnings about hypotheses, compared with the references."""
    warnings = []
    if _share(hypotheses, _has_subword_marks) > MANY:
        warnings.append("the hypotheses look split into subwords; join them before scoring")
    elif warning := _tokenised(hypotheses, references):
        warnings.append(warning)
    if warning := _lower_cased(hypotheses, references):
        warnings.append(warning)
    empty = sum(not line.strip() for line in hypotheses)
    if empty and empty == len(hypotheses):
        warnings.append(f"all {empty:,} hypotheses are empty; check the file of translations")
    elif empty:
        warnings.append(f"{empty:,} of {len(hypotheses):,} hypotheses are empty")
    return tuple(warnings)


def suspect_test_set(references: Sequence[str]) -> tuple[str, ...]:
    """Warnings about a test set."""
    warnings = []
    empty = sum(not line.strip() for line in references)
    if empty:
        warnings.append(f"{empty:,} of {len(references):,} references are empty")
    if len(references) < FEW_SENTENCES:
        warnings.append(
            f"{len(references):,} sentences are few: intervals and p-values mean little "
            f"below {FEW_SENTENCES}"
        )
    return tuple(warnings)


def _tokenised(hypotheses: Sequence[str], references: Sequence[str]) -> str | None:
    ours, theirs = (
        _share(hypotheses, _is_spaced),
        _share(references, _is_spaced),
    )
    if ours > MANY and theirs > MANY:
        return (
            "both sides look tokenised; sacreBLEU and chrF are for plain text, so these "
            "scores are not comparable with others"
        )
    if ours > MANY and theirs < FEW:
        return "the hypotheses look tokenised and the references do not; detokenise them first"
    if theirs > MANY and ours < FEW:
        return "the references look tokenised and the hypotheses do not; score against plain text"
    return None


def _lower_cased(hypotheses: Sequence[str], references: Sequence[str]) -> str | None:
    ours, theirs = _share(hypotheses, _has_capitals), _share(references, _has_capitals)
    if ours < FEW and theirs > MANY:
        return (
            "the hypotheses look lower-cased and the references do not; restore the case, or use "
            "only the lower-cased score"
        )
    if theirs < FEW and ours > MANY:
        return (
            "the references look lower-cased and the hypotheses do not; score against cased text, "
            "or use only the lower-cased score"
        )
    return None


def _share(lines: Sequence[str], judge: Callable[[str], bool | None]) -> float:
    """The share of true verdicts, ignoring lines without a verdict.

    NaN if no line has a verdict: it compares as neither more nor less than any share.
    """
    verdicts = [verdict for line in lines if (verdict := judge(line)) is not None]
    return sum(verdicts) / len(verdicts) if verdicts else math.nan


def _is_spaced(line: str) -> bool | None:
    """Whether punctuation is preceded by a space. None without punctuation."""
    loose = bool(_LOOSE.search(line))
    return loose if loose or _TIED.search(line) else None


def _has_subword_marks(line: str) -> bool | None:
    return bool(_SUBWORD_MARK.search(line)) if " " in line.strip() else None


def _has_capitals(line: str) -> bool | None:
    return line != line.lower() if line.upper() != line.lower() else None
