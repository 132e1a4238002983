"""Reads, cleans and writes Penn-style trees.

    ( (S (NP-SBJ-1 (DT The) (NN cat)) (VP (VBZ sleeps) (NP (-NONE- *-1))) (. .)) )

A tree is stored flat: its words, their tags and the brackets over them in the order in which they
open. So trees of any depth need no recursion, and the spans, on which scores are based, are
directly available.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from transept.errors import DataError
from transept.progress import Tally
from transept.text.files import describe, read_text

TRACE: Final = "-NONE-"
"""The tag of elements that are annotated but not in the text: traces, zeros, ellipses."""

PLACEHOLDER: Final = "TOP"
"""The label of a root without a label."""
ROOTS: Final = frozenset({"", PLACEHOLDER, "ROOT", "S1", "VROOT"})
"""Labels that treebanks and parsers put around the root proper; many write `( (S …))`."""

# An unclosed bracket would turn the whole rest of the file into one tree.
_LONGEST: Final = 1 << 20

# Only ASCII white space ends a word: a no-break space may be part of one, as in `10 000`.
WORD: Final = re.compile(r"\S+", re.ASCII)
_TOKEN: Final = re.compile(
    r"\(\s*+([^\s()]++)\s++([^\s()]++)\s*+\)"  # (tag word)
    r"|\(\s*+([^\s()]*+)"  # (label
    r"|(\))"
    r"|([^\s()]++)",  # a word in an invalid position
    re.ASCII,
)


class MalformedTreeError(DataError):
    """Text that is not a tree."""

    def __init__(self, what: str, name: str, line: int) -> None:
        self.what = what
        example = "(S (NP (DT The) (NN cat)) (VP (VBZ sleeps)))"
        super().__init__(f"{name}, line {line}: {what}; trees look like {example}")


class Bracket(NamedTuple):
    """A constituent: its label, the index of its first word and the index after its last."""

    label: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tree:
    """A sentence and its constituents, none of them empty.

    Example:
        >>> parse_tree("(NP (DT the) (NN cat))").brackets
        (Bracket(label='NP', start=0, end=2),)
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    brackets: tuple[Bracket, ...]
    """In the order in which they open: outer before inner, left before right."""

    def __str__(self) -> str:
        """Return one line in treebank format; brackets in words become -LRB- and -RRB-."""
        leaves = [
            f"({escape(tag)} {escape(word)})"
            for tag, word in zip(self.tags, self.words, strict=True)
        ]
        return " ".join(self.depth_first(leaves, lambda _: ")")).replace(" )", ")")

    def depth_first(self, leaves: Sequence[str], close: Callable[[str], str]) -> list[str]:
        """Return the symbols of the tree from left to right: `(S`, …, leaves, …, close("S").

        Args:
            leaves: The symbol of each word.
            close: Returns the symbol for the end of a constituent, given its label.
        """
        sequence: list[str] = []
        unfinished: list[Bracket] = []
        position = 0
        for bracket in (*self.brackets, Bracket("", len(leaves), len(leaves))):
            label, start, _ = bracket
            while unfinished and unfinished[-1].end <= start:
                finished = unfinished.pop()
                sequence += leaves[position : finished.end]
                position = finished.end
                sequence.append(close(finished.label))
            sequence += leaves[position:start]
            position = start
            sequence.append(f"({label}")
            unfinished.append(bracket)
        sequence.pop()  # the sentinel bracket, which closed all the others
        return sequence


class BracketStack:
    """The brackets of a tree while it is read from left to right."""

    __slots__ = ("_ends", "_labels", "_starts", "_unfinished", "depth", "position")

    def __init__(self) -> None:
        self.position = 0  # words read so far, counted by the reader
        self.depth = 0
        self._labels: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._unfinished: list[int] = []

    def open(self, label: str) -> None:
        """Open a bracket."""
        self._unfinished.append(len(self._labels))
        self._labels.append(label)
        self._starts.append(self.position)
        self._ends.append(0)
        self.depth += 1

    def close(self) -> str:
        """Close the innermost bracket and return its label."""
        bracket = self._unfinished.pop()
        self._ends[bracket] = self.position
        self.depth -= 1
        return self._labels[bracket]

    def holds_a_word(self) -> bool:
        """Whether the innermost bracket is not empty."""
        return self._starts[self._unfinished[-1]] < self.position

    def labels(self) -> list[str]:
        """Return the labels of the open brackets, from the root inwards."""
        return [self._labels[bracket] for bracket in self._unfinished]

    def brackets(self) -> tuple[Bracket, ...]:
        """Return all brackets that were opened and closed."""
        return tuple(map(Bracket, self._labels, self._starts, self._ends))


# --- reading ---------------------------------------------------------------------------------


def read_trees(path: Path, tally: Tally | None = None) -> Iterator[Tree]:
    """Yield every tree of a file, on one or several lines; .gz, .xz and .zst are decompressed."""
    name = describe(path)
    for line, text in tree_texts(read_text(path, tally), name):
        yield from parse_trees(text, name, line)


def tree_texts(lines: Iterable[str], name: str) -> Iterator[tuple[int, str]]:
    """Join lines until all brackets are closed; yield each text with its first line number.

    Usually one line is one tree, and this costs little more than reading it. Parsing can be left
    to another process.
    """
    together: list[str] = []
    first = depth = size = 0
    for number, line in enumerate(lines, start=1):
        if not depth:
            if not line or line.isspace():
                continue
            together, first, size = [], number, 0
        together.append(line.removeprefix("\ufeff") if number == 1 else line)
        depth += line.count("(") - line.count(")")
        size += len(line)
        if depth <= 0:
            yield first, "\n".join(together)
            depth = 0
        elif size > _LONGEST:
            break
    if depth:
        raise MalformedTreeError("the tree that begins here is not closed", name, first)


def parse_tree(text: str) -> Tree:
    """Parse a text that contains exactly one tree."""
    trees = parse_trees(text)
    if len(trees) != 1:
        raise DataError(f"{len(trees)} trees where one was expected: {text[:80]!r}")
    return trees[0]


def parse_trees(text: str, name: str = "text", line: int = 1) -> list[Tree]:
    """Parse the trees of a text, in order.

    Args:
        text: Brackets and words, separated by any spaces and line breaks.
        name: The name of the text in errors.
        line: The number of its first line.
    """
    trees: list[Tree] = []
    words: list[str] = []
    tags: list[str] = []
    stack = BracketStack()
    for index, (tag, word, label, close, stray) in enumerate(_TOKEN.findall(text)):
        if word:
            words.append(word)
            tags.append(tag)
            stack.position += 1
        elif close and stack.depth and stack.holds_a_word():
            stack.close()
        elif not (close or stray) and (label or not stack.depth):
            stack.open(label)
            continue
        else:
            raise _damage(text, index, stack.depth, name, line)
        if not stack.depth:
            trees.append(Tree(tuple(words), tuple(tags), stack.brackets()))
            words, tags, stack = [], [], BracketStack()
    if stack.depth:
        raise MalformedTreeError("the tree that begins here is not closed", name, line)
    return trees


def _damage(text: str, index: int, depth: int, name: str, line: int) -> MalformedTreeError:
    """Describe the error at a token, given by its index."""
    token = list(_TOKEN.finditer(text))[index]
    _, _, _, close, stray = token.groups()
    if stray and depth:
        what = f"the word {stray!r} has no tag"
    elif stray:
        what = f"{stray!r} is outside of any tree"
    elif not close:
        what = "a bracket inside a tree has no label"
    elif depth:
        what = "a bracket holds no word"
    else:
        what = "a closing bracket has no opening bracket"
    return MalformedTreeError(what, name, line + text.count("\n", 0, token.start()))


# --- cleaning --------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCleaning:
    """Which annotations of a treebank are kept for training a parser."""

    labels: Literal["plain", "kept"] = "plain"
    """`plain` removes functions and indices: NP-SBJ-1 and NP=2 become NP."""
    traces: Literal["removed", "kept"] = "removed"
    """`removed` drops words tagged -NONE-, and constituents that contain nothing else."""
    root: Literal["own", "kept"] = "own"
    """`own` removes a bracket around the root that has no label, or a label such as TOP."""


PARSING: Final = TreeCleaning()
"""The usual cleaning for parsing."""


def clean(tree: Tree, cleaning: TreeCleaning = PARSING) -> Tree | None:
    """Return the cleaned tree, or None if no word is left."""
    words, tags, brackets = tree.words, tree.tags, tree.brackets
    if cleaning.traces == "removed" and TRACE in tags:
        there = [tag != TRACE for tag in tags]
        before = list(accumulate(there, initial=0))
        words, tags = tuple(compress(words, there)), tuple(compress(tags, there))
        brackets = tuple(
            Bracket(label, before[start], before[end])
            for label, start, end in brackets
            if before[start] < before[end]
        )
        if not words:
            return None
    if cleaning.labels == "plain" and any("-" in b[0] or "=" in b[0] for b in brackets):
        brackets = tuple(Bracket(plain(label), start, end) for label, start, end in brackets)
    if cleaning.root == "own":
        brackets = _own_root(brackets, len(words))
    return Tree(words, tags, brackets)


def plain(label: str) -> str:
    """Remove functions and indices from a label. -LRB- and similar labels are kept.

    Example:
        >>> plain("NP-SBJ=2"), plain("-LRB-")
        ('NP', '-LRB-')
    """
    return label.partition("-")[0].partition("=")[0] or label


def _own_root(brackets: tuple[Bracket, ...], n_words: int) -> tuple[Bracket, ...]:
    """Start with the actual root, or a placeholder if no labelled bracket spans all words."""
    first = 0
    while (
        first + 1 < len(brackets)
        and brackets[first].label in ROOTS
        and brackets[first + 1].end - brackets[first + 1].start == n_words
    ):
        first += 1
    if not brackets or not brackets[first].label:
        return (Bracket(PLACEHOLDER, 0, n_words), *brackets[first + 1 :])
    return brackets[first:]


# --- brackets in words -----------------------------------------------------------------------


def escape(word: str) -> str:
    """Escape a word for use in a tree: round brackets become -LRB- and -RRB-."""
    if "(" in word or ")" in word:
        return word.replace("(", "-LRB-").replace(")", "-RRB-")
    return word


def unescape(word: str) -> str:
    """Invert `escape`."""
    return word.replace("-LRB-", "(").replace("-RRB-", ")")
