"""Which pairs are dropped before training: reasons and thresholds."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from transept.config import Checks


class Reason(StrEnum):
    """Why a pair was dropped. Checked in this order; the first reason that applies is counted."""

    ENCODING = "encoding"
    MALFORMED = "malformed"
    EMPTY = "empty"
    LONG = "long"
    RATIO = "ratio"
    DUPLICATE = "duplicate"

    @property
    def meaning(self) -> str:
        """The reason in words, for the report."""
        return _MEANINGS[self]


_MEANINGS = {
    Reason.ENCODING: "not UTF-8 text",
    Reason.MALFORMED: "not in the input's format",
    Reason.EMPTY: "a side is empty",
    Reason.LONG: "a side has too many tokens",
    Reason.RATIO: "the sides differ too much in length",
    Reason.DUPLICATE: "the pair occurred before",
}

BAD = (Reason.ENCODING, Reason.MALFORMED)
"""Faults of the file rather than the sentence. Their lines are listed individually."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleaning:
    """Which pairs to drop. Lengths are in tokens, including EOS."""

    max_tokens: int = 250
    """Drop pairs with more tokens than this on a side; 0 for no limit."""
    max_ratio: float = 3.0
    """Drop pairs if one side is more than this many times as long as the other; 0 for no limit.
    Not applied to trees."""
    drop_empty: bool = True
    """Drop pairs with an empty side."""
    drop_duplicates: bool = True
    """Drop all but the first of equal pairs."""
    bad_encoding: Literal["drop", "stop", "replace"] = "drop"
    """Text that is not UTF-8 or contains NUL characters: drop the pair, stop, or replace the
    invalid characters."""
    malformed: Literal["drop", "stop"] = "drop"
    """A line that is not in the input's format: drop it or stop. Without a target tokenizer, a
    vocabulary is built from the trees, and a malformed tree is always an error."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        possible = self.max_tokens == 0 or self.max_tokens >= 2
        checks.that(possible, "max_tokens", "must be 0 (no limit) or at least 2")
        possible = self.max_ratio == 0 or self.max_ratio >= 1
        checks.that(possible, "max_ratio", "must be 0 (no limit) or at least 1")
        checks.done()


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped row: its location, the reason and details."""

    path: str
    line: int
    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        return "\t".join((self.path, str(self.line), self.reason, self.detail))
