"""Sentence pairs: a meaning said twice, with the words that correspond."""

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
    """Words, with the apostrophes and hyphens inside them, and single punctuation marks.

    Example:
        >>> tokens("Anna's dog sleeps, at 8 o'clock.")
        ["Anna's", 'dog', 'sleeps', ',', 'at', '8', "o'clock", '.']
    """
    return _TOKEN.findall(text)


def pair(sentence: Sentence) -> SentencePair:
    """Say a meaning in both languages."""
    source, target = english.say(sentence), german.say(sentence)
    return SentencePair(_write(source), _write(target), _align(source, target))


def _write(said: list[Token]) -> str:
    """Spaces between words, none before punctuation, and a capital to begin with."""
    stop = said[-1][0]
    text = " ".join([word for word, _ in said[:-1]]).replace(" ,", ",")
    return text[0].upper() + text[1:] + stop


def _align(source: list[Token], target: list[Token]) -> Alignment:
    """Tokens correspond when they say the same part of the meaning."""
    places: dict[int, list[int]] = {}
    for j, (_, parts) in enumerate(target):
        for part in parts:
            places.setdefault(part, []).append(j)
    pairs = [
        (i, j)
        for i, (_, parts) in enumerate(source)
        for part in parts
        for j in places.get(part, ())
    ]
    pairs.sort()
    return tuple(pairs)
