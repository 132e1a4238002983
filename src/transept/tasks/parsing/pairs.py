"""Treebanks as parallel text: words on one side, linearised trees on the other."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from transept.progress import Tally
from transept.tasks.parsing.leaves import Tags
from transept.tasks.parsing.linearisation import linearise
from transept.text.trees import PARSING, Tree, TreeCleaning, clean, read_trees


def clean_trees(
    files: Iterable[Path], cleaning: TreeCleaning = PARSING, tally: Tally | None = None
) -> Iterator[Tree]:
    """Yield the cleaned trees of treebank files, without trees that have no words."""
    for path in files:
        for tree in read_trees(path, tally):
            cleaned = clean(tree, cleaning)
            if cleaned is not None:
                yield cleaned


def pair_of(tree: Tree, tags: Tags = "XX") -> tuple[str, str]:
    """Return the source and target line of a tree.

    Example:
        >>> from transept.text.trees import parse_tree
        >>> pair_of(parse_tree("(NP (DT the) (NN cat))"))
        ('the cat', '(NP XX XX )NP')
    """
    return " ".join(tree.words), " ".join(linearise(tree, tags))
