"""Which symbols may come next, so that the end is a tree: the plain version of `constraint`.

A prefix is allowed if some tree within the bounds begins with it. What such a tree still needs is
the words that are left, a closing bracket for each open one, the end symbol, and now and then a
word more inside a bracket, lest too many brackets end up over the same words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from transept.tasks.parsing.leaves import word_of
from transept.tasks.parsing.linearisation import CLOSE, OPEN, leaves_of
from transept.text.tokenizer import EOS
from transept.text.trees import escape

MAX_UNARY: Final = 5
"""The Penn Treebank and its like hold up to four brackets over the same words, very rarely."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The trees that are allowed."""

    words: Sequence[str]
    """Over exactly these."""
    max_length: int
    """Of at most so many symbols, end symbol counted."""
    max_unary: int = MAX_UNARY
    """With at most so many brackets over the same words."""

    @property
    def n_words(self) -> int:
        """Their number."""
        return len(self.words)

    @property
    def feasible(self) -> bool:
        """Whether there is any such tree; a root and its words must fit in."""
        return self.n_words >= 1 and self.max_length >= self.n_words + 3 and self.max_unary >= 1


def may_follow(prefix: Sequence[str], symbols: Iterable[str], bounds: Bounds) -> set[str]:
    """Those of the symbols, or of EOS, that may come after an allowed prefix.

    A leaf that names a word stands for that word alone, and where one does, no other leaf may.
    """
    leaves = leaves_of([*symbols])
    place = len(leaves_of(prefix))
    word = escape(bounds.words[place]) if place < bounds.n_words else ""
    naming = {leaf for leaf in leaves if word_of(leaf) == word}
    others = set(leaves) - (naming or {leaf for leaf in leaves if not word_of(leaf)})
    return {
        symbol
        for symbol in (*symbols, EOS)
        if symbol not in others and can_be_completed([*prefix, symbol], bounds)
    }


def can_be_completed(symbols: Sequence[str], bounds: Bounds) -> bool:
    """Whether some tree within the bounds begins like this. EOS may only be its last symbol."""
    labels: list[str] = []  # of the open brackets
    chains: list[int] = []  # see `_needed_words`
    n_words = 0
    for place, symbol in enumerate(symbols):
        if place and not labels:  # the root is closed: only the end may come, and only once
            return symbols[place:] == [EOS] and n_words == bounds.n_words
        if symbol[0] == OPEN:
            labels.append(symbol[1:])
            chains.append(0)
        elif symbol[0] == CLOSE:
            if not labels or labels.pop() != symbol[1:]:
                return False
            chain = chains.pop()
            if not 1 <= chain <= bounds.max_unary:
                return False
            if chains:
                chains[-1] = 1 if chains[-1] else chain + 1
        elif labels and symbol != EOS:
            n_words += 1
            chains[-1] = 1
        else:
            return False
    left = bounds.n_words - n_words
    if not labels:
        return left == 0
    fits = len(symbols) + left + len(labels) + 1 <= bounds.max_length
    return fits and left >= _needed_words(chains, bounds.max_unary)


def _needed_words(chains: Sequence[int], max_unary: int) -> int:
    """How many more words the open brackets need at least.

    A bracket's chain is how many brackets would be over its words if it were closed now, itself
    counted: 1 if it holds a word or several things, one more than its only child's if that is a
    bracket, 0 if it holds nothing. One more word inside makes it 1.
    """
    needed = 0
    inner = 0  # the chain of the bracket inside, by now closed
    for chain in reversed(chains):
        if inner:
            chain = 1 if chain else inner + 1
        if not 1 <= chain <= max_unary:
            needed, chain = needed + 1, 1
        inner = chain
    return needed
