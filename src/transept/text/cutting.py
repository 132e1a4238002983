"""A sentence too long for a model, cut where it hurts least; nothing of it is lost."""

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
    """Pieces of at most `max_tokens` tokens, EOS not counted, each with the white space after it.

    The sentence, which has no white space at its ends, is halved, and the halves again, at the
    best place of the middle half: after a semicolon or the like, after a comma, at white space,
    between two tokens. No character is divided.
    """
    ids = tokenizer.encode(text)
    if len(ids) <= max_tokens or len(text) < 2:
        return [Piece(text, "")]
    place = _place_to_cut(text) or _between_tokens(text, ids, tokenizer)
    left, right = text[:place].rstrip(), text[place:].lstrip()
    *first, last = cut(left, tokenizer, max_tokens)
    joint = Piece(last.text, text[len(left) : len(text) - len(right)])
    return [*first, joint, *cut(right, tokenizer, max_tokens)]


def _place_to_cut(text: str) -> int | None:
    """The best place in the middle half of a sentence."""
    middle, quarter = len(text) // 2, len(text) // 4
    for rank in _RANKS:
        found = (match.end() for match in rank.finditer(text, quarter, len(text) - quarter))
        if places := [place for place in found if 0 < place < len(text)]:
            return min(places, key=lambda place: abs(place - middle))
    return None


def _between_tokens(text: str, ids: list[int], tokenizer: Tokenizer) -> int:
    """The boundary of tokens nearest before the middle that divides no character."""
    for middle in range(len(ids) // 2, 0, -1):
        prefix = tokenizer.decode(ids[:middle])
        if 0 < len(prefix) < len(text) and text.startswith(prefix):
            return len(prefix)
    return len(text) // 2
