"""Treebank files as an input of `data.preparation`: resumable, and parsed in all processes."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import ClassVar

from transept.data.preparation.formats import Row, Sentences
from transept.progress import Tally
from transept.tasks.parsing.leaves import Tags
from transept.tasks.parsing.pairs import pair_of
from transept.text.files import describe, read_lines
from transept.text.trees import (
    PARSING,
    MalformedTreeError,
    TreeCleaning,
    clean,
    parse_tree,
    tree_texts,
)


@dataclass(frozen=True, slots=True)
class Treebank:
    """A file of trees: their words are the source, their symbols the target."""

    path: Path
    tags: Tags = "XX"
    cleaning: TreeCleaning = PARSING
    format: ClassVar[str] = "trees"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The file."""
        return (self.path,)

    @property
    def options(self) -> tuple[str, ...]:
        """What of the trees is left."""
        return (str(self.tags), *astuple(self.cleaning))

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """The trees as text, each on a line of its own."""
        # What is not UTF-8 is for others to judge: it goes through unharmed.
        lines = (line.decode("utf-8", "surrogateescape") for line in read_lines(self.path, tally))
        for number, text in tree_texts(lines, describe(self.path)):
            for one in _one_by_one(text):
                yield number, (one.replace("\n", " ").encode("utf-8", "surrogateescape"),)

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Words and symbols; nothing for a tree that is all traces."""
        found = Sentences([], [], {})
        for row, text in enumerate(columns[0]):
            words = symbols = ""
            try:
                tree = clean(parse_tree(text), self.cleaning) if text else None
                if tree is not None:
                    words, symbols = pair_of(tree, self.tags)
            except MalformedTreeError as error:
                found.malformed[row] = error.what
            found.source.append(words)
            found.target.append(symbols)
        return found


def _one_by_one(text: str) -> Iterator[str]:
    """The trees of a text, and whatever else stands there."""
    start = end = depth = 0
    for part in text.split(")")[:-1]:
        end += len(part) + 1
        depth += part.count("(") - 1
        if depth <= 0:
            yield text[start:end]
            start, depth = end, 0
    if text[start:].strip():
        yield text[start:]
