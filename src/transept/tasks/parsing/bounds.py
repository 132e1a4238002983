"""Which symbols may come next so that the result is a tree: the reference for `constraint`.

A prefix is allowed if some tree within the bounds begins with it. To complete such a tree, the
remaining words, a closing bracket for each open one and the end symbol are needed. Sometimes
another word is needed inside a bracket, so that not too many brackets cover the same words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from transept.tasks.parsing.leaves import word_of
from transept.tasks.parsing.linearisation import CLOSE, OPEN, leaves_of
from transept.text.tokenizer import EOS
from transept.text.trees import escape

MAX_UNARY: Final = 5
"""The Penn Treebank and similar treebanks have up to four brackets over the same words, rarely."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The trees that are allowed."""

    words: Sequence[str]
    """The words of the tree."""
    max_length: int
    """Maximum number of symbols, including the end symbol."""
    max_unary: int = MAX_UNARY
    """Maximum number of brackets over the same words."""

    @property
    def n_words(self) -> int:
        """The number of words."""
        return len(self.words)

    @property
    def feasible(self) -> bool:
        """Whether any such tree exists. A root and its words must fit."""
        return self.n_words >= 1 and self.max_length >= self.n_words + 3 and self.max_unary >= 1


def may_follow(prefix: Sequence[str], symbols: Iterable[str], bounds: Bounds) -> set[str]:
    """Return which of the symbols and EOS may follow an allowed prefix.

    A leaf that names a word may represent only that word. If such a leaf exists for the next
    word, no other leaf may represent it.
    """
    leaves = leaves_of([*symbols])
    position = len(leaves_of(prefix))
    word = escape(bounds.words[position]) if position < bounds.n_words else ""
    naming = {leaf for leaf in leaves if word_of(leaf) == word}
    others = set(leaves) - (naming or {leaf for leaf in leaves if not word_of(leaf)})
    return {
        symbol
        for symbol in (*symbols, EOS)
        if symbol not in others and can_be_completed([*prefix, symbol], bounds)
    }


def can_be_completed(symbols: Sequence[str], bounds: Bounds) -> bool:
    """Whether some tree within the bounds begins like this. EOS may only be the last symbol."""
    labels: list[str] = []  # of the open brackets
    chains: list[int] = []  # see `_needed_words`
    n_words = 0
    for position, symbol in enumerate(symbols):
        if position and not labels:  # the root is closed: only one EOS may follow
            return symbols[position:] == [EOS] and n_words == bounds.n_words
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
    """Return the minimum number of further words that the open brackets need.

    A bracket's chain is the number of brackets over its words, including itself, if it were closed
    now. It is 1 if the bracket holds a word or several children, one more than the chain of its
    only child if that is a bracket, and 0 if it is empty. Adding a word makes it 1.
    """
    needed = 0
    inner = 0  # the chain of the inner bracket, now closed
    for chain in reversed(chains):
        if inner:
            chain = 1 if chain else inner + 1
        if not 1 <= chain <= max_unary:
            needed, chain = needed + 1, 1
        inner = chain
    return needed
