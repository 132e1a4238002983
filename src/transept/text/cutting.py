"""Splits a sentence that is too long for a model at the best positions, without losing text."""

import re

from transept.text.sentences import CLOSERS, WIDE_STOPS, Piece
from transept.text.tokenizer import Tokenizer

_RANKS = (
    re.compile(rf"(?<=[;:.!?…])[{re.escape(CLOSERS)}]*(?=\s)|(?<=[；：{WIDE_STOPS}])"),
    re.compile(r"(?<=[,)\]])(?=\s)|(?<=[，、])|(?=\s[(\[–—-])"),
    re.compile(r"(?=\s)"),
)
"""Ends of clauses; commas, brackets and dashes; white space."""


def cut(text: str, tokenizer: Tokenizer, max_tokens: int) -> list[Piece]:
    """Split a sentence into parts of at most `max_tokens` tokens without EOS.

    Each part includes the white space after it. The sentence must not start or end with white
    space. It is halved recursively at the best position within its middle half: after a semicolon
    or similar, after a comma, at white space, or between two tokens. Characters are never split.
    """
    ids = tokenizer.encode(text)
    if len(ids) <= max_tokens or len(text) < 2:
        return [Piece(text, "")]
    split = _best_split(text) or _token_boundary(text, ids, tokenizer)
    left, right = text[:split].rstrip(), text[split:].lstrip()
    *first, last = cut(left, tokenizer, max_tokens)
    joint = Piece(last.text, text[len(left) : len(text) - len(right)])
    return [*first, joint, *cut(right, tokenizer, max_tokens)]


def _best_split(text: str) -> int | None:
    """Return the best position in the middle half of a sentence."""
    middle, quarter = len(text) // 2, len(text) // 4
    for rank in _RANKS:
        found = (match.end() for match in rank.finditer(text, quarter, len(text) - quarter))
        if positions := [position for position in found if 0 < position < len(text)]:
            return min(positions, key=lambda position: abs(position - middle))
    return None


def _token_boundary(text: str, ids: list[int], tokenizer: Tokenizer) -> int:
    """Return the last token boundary up to the middle that does not split a character."""
    for middle in range(len(ids) // 2, 0, -1):
        prefix = tokenizer.decode(ids[:middle])
        if 0 < len(prefix) < len(text) and text.startswith(prefix):
            return len(prefix)
    return len(text) // 2
