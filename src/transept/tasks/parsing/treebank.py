"""Treebank files as input of `data.preparation`: resumable, and parsed in parallel."""

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
    """A file of trees. Their words are the source, their symbols the target."""

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
        """The tags and the cleaning settings."""
        return (str(self.tags), *astuple(self.cleaning))

    def rows(self, tally: Tally | None = None) -> Iterator[Row]:
        """Yield the trees as text, one per line."""
        # Invalid UTF-8 passes through unchanged; the encoder handles it.
        lines = (line.decode("utf-8", "surrogateescape") for line in read_lines(self.path, tally))
        for number, text in tree_texts(lines, describe(self.path)):
            for one in _split_trees(text):
                yield number, (one.replace("\n", " ").encode("utf-8", "surrogateescape"),)

    def sentences(self, columns: Sequence[list[str]]) -> Sentences:
        """Return words and symbols, both empty for a tree that contains only traces."""
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


def _split_trees(text: str) -> Iterator[str]:
    """Yield the trees of a text, and any other text as it is."""
    start = end = depth = 0
    for part in text.split(")")[:-1]:
        end += len(part) + 1
        depth += part.count("(") - 1
        if depth <= 0:
            yield text[start:end]
            start, depth = end, 0
    if text[start:].strip():
        yield text[start:]
