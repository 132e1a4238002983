"""Which translated sentences are not used for training."""

import re
from enum import StrEnum
from typing import Final

from transept.text.protection import Masked
from transept.text.spans import MASKS

MAX_RATIO: Final = 3
"""The maximum ratio of the lengths of the two sides, in characters."""


_WRONG = re.compile("[\0\x80-\x9f\ufffd]")
_MASK = re.compile(f"[{''.join(MASKS)}]")


class Flaw(StrEnum):
    """Why a pair is dropped. Checked in this order; the first that applies is counted."""

    EMPTY = "empty"
    """A side is empty."""
    LONG = "long"
    """The sentence is longer than those that the translator was trained on."""
    UNFINISHED = "unfinished"
    """The translation ended at the maximum length."""
    ENCODING = "encoding"
    """A side has a control character, or U+FFFD for bytes that are not a character."""
    MASKS = "masks"
    """The two sides have different masks."""
    RATIO = "ratio"
    """One side is more than three times as long as the other."""
    LOOP = "loop"
    """The translation repeats itself, and the sentence does not."""


def find_flaw(
    read: str, written: str, *, finished: bool = True, too_long: bool = False
) -> Flaw | None:
    """The flaw of a pair. None if it can be used.

    Args:
        read: The text that the translator read.
        written: Its translation.
        finished: Whether the translation ended with the end symbol.
        too_long: Whether the text was too long, and was translated in parts.
    """
    shorter, longer = sorted(map(len, (read, written)))
    found = {
        Flaw.EMPTY: not shorter,
        Flaw.LONG: too_long,
        Flaw.UNFINISHED: not finished,
        Flaw.ENCODING: bool(_WRONG.search(read) or _WRONG.search(written)),
        Flaw.MASKS: _masks(read) != _masks(written),
        Flaw.RATIO: longer > MAX_RATIO * shorter,
        Flaw.LOOP: Masked(read).is_loop(written),
    }
    return next((flaw for flaw, is_found in found.items() if is_found), None)


def _masks(text: str) -> list[str]:
    return sorted(_MASK.findall(text))
