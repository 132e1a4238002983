"""Sentence pairs: a meaning expressed in two languages, with word alignment."""

import re
from typing import Final, NamedTuple

from grammar import english, german
from grammar.meaning import Sentence
from grammar.parts import Token

Alignment = tuple[tuple[int, int], ...]

_TOKEN: Final = re.compile(r"\w+(?:['-]\w+)*|[^\w\s]")


class SentencePair(NamedTuple):
    """An English sentence, its German translation, and which of their tokens correspond."""

    source: str
    target: str
    alignment: Alignment
    """Pairs (i, j) of indices into `tokens(source)` and `tokens(target)`, in order."""

    @property
    def pharaoh(self) -> str:
        """The alignment as `0-0 1-2 …`."""
        return " ".join(f"{i}-{j}" for i, j in self.alignment)


def tokens(text: str) -> list[str]:
    """Split a text into words, including inner apostrophes and hyphens, and punctuation marks.

    Example:
        >>> tokens("Anna's dog sleeps, at 8 o'clock.")
        ["Anna's", 'dog', 'sleeps', ',', 'at', '8', "o'clock", '.']
    """
    return _TOKEN.findall(text)


def pair(sentence: Sentence) -> SentencePair:
    """Express a meaning in both languages."""
    source, target = english.say(sentence), german.say(sentence)
    return SentencePair(_write(source), _write(target), _align(source, target))


def _write(tokens: list[Token]) -> str:
    """Join tokens with spaces, except before punctuation, and capitalize the first."""
    stop = tokens[-1][0]
    text = " ".join([word for word, _ in tokens[:-1]]).replace(" ,", ",")
    return text[0].upper() + text[1:] + stop


def _align(source: list[Token], target: list[Token]) -> Alignment:
    """Align tokens that express the same part of the meaning."""
    positions: dict[int, list[int]] = {}
    for j, (_, parts) in enumerate(target):
        for part in parts:
            positions.setdefault(part, []).append(j)
    pairs = [
        (i, j)
        for i, (_, parts) in enumerate(source)
        for part in parts
        for j in positions.get(part, ())
    ]
    pairs.sort()
    return tuple(pairs)
