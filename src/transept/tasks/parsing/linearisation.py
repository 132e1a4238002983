"""Trees as sequences, and back (section 6.3, after Vinyals et al. 2015).

    (S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))   ->   (S (NP XX XX )NP (VP XX )VP )S

Depth first, with labelled closing brackets. `leaves` defines the symbols for words.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from transept.errors import DataError
from transept.tasks.parsing.leaves import Tags, leaves_over, tag_of
from transept.text.tokenizer import UNK
from transept.text.trees import Bracket, BracketStack, Tree

OPEN: Final = "("
CLOSE: Final = ")"


class Fault(Enum):
    """Why a sequence is not a tree over its words. The first fault found is reported."""

    NO_ROOT = "it does not begin with a bracket"
    UNKNOWN = "it has a symbol that is not in the vocabulary"
    MISMATCHED = "a bracket is closed by one with another label"
    EMPTY = "a bracket holds no word"
    AFTER_ROOT = "it continues after the root is closed"
    TOO_MANY_WORDS = "it has more words than the sentence"
    UNCLOSED = "a bracket is not closed"
    TOO_FEW_WORDS = "it has fewer words than the sentence"


class MalformedSequenceError(DataError):
    """A sequence is not a tree over the given words."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(f"the sequence is not a tree: {fault.value}; use `repair` to fix it")


def linearise(tree: Tree, tags: Tags = "XX") -> list[str]:
    """Return the symbols of a tree, which must have a root (`clean` adds one)."""
    if not tree.brackets:
        raise DataError(f"the tree {tree} has no constituent to linearise; `clean` adds one")
    return tree.depth_first(leaves_over(tree, tags), CLOSE.__add__)


def delinearise(
    symbols: Sequence[str], words: Sequence[str], tags: Sequence[str] | None = None
) -> Tree:
    """Return the tree of these symbols: the inverse of `linearise`.

    Args:
        symbols: The linearised tree.
        words: The words of the tree.
        tags: Their tags. None: the tags in the sequence.
    """
    found = scan(symbols, len(words))
    if isinstance(found, Fault):
        raise MalformedSequenceError(found)
    own = map(tag_of, leaves_of(symbols))
    return Tree(tuple(words), tuple(own if tags is None else tags), found)


def fault_of(symbols: Sequence[str], n_words: int) -> Fault | None:
    """Return why a sequence is not a tree over `n_words` words, or None if it is one."""
    found = scan(symbols, n_words)
    return found if isinstance(found, Fault) else None


def leaves_of(symbols: Sequence[str]) -> list[str]:
    """Return the symbols that represent words."""
    return [symbol for symbol in symbols if symbol[0] not in (OPEN, CLOSE)]


def scan(symbols: Sequence[str], n_words: int) -> tuple[Bracket, ...] | Fault:
    """Return the brackets of a well-formed sequence, or the first fault of a malformed one."""
    stack = BracketStack()
    for index, symbol in enumerate(symbols):
        if not stack.depth and (index or symbol[0] != OPEN):
            return Fault.AFTER_ROOT if index else Fault.NO_ROOT
        fault = _advance(symbol, stack, n_words)
        if fault is not None:
            return fault
    if not symbols:
        return Fault.NO_ROOT
    if stack.depth:
        return Fault.UNCLOSED
    return stack.brackets() if stack.position == n_words else Fault.TOO_FEW_WORDS


def _advance(symbol: str, stack: BracketStack, n_words: int) -> Fault | None:
    if symbol[0] == OPEN:
        stack.open(symbol[1:])
    elif symbol[0] == CLOSE:
        if not stack.holds_a_word():
            return Fault.EMPTY
        if stack.close() != symbol[1:]:
            return Fault.MISMATCHED
    elif symbol == UNK:
        return Fault.UNKNOWN
    elif stack.position == n_words:
        return Fault.TOO_MANY_WORDS
    else:
        stack.position += 1
    return None
