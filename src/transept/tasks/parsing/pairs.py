"""Treebanks as parallel text: words on one side, linearised trees on the other."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from transept.errors import DataError
from transept.runtime.storage import replacing
from transept.tasks.parsing.leaves import Tags
from transept.tasks.parsing.linearisation import linearise
from transept.text.files import BytesRead
from transept.text.trees import PARSING, Cleaning, Tree, clean, read_trees


def clean_trees(
    files: Iterable[Path], cleaning: Cleaning = PARSING, on_bytes: BytesRead | None = None
) -> Iterator[Tree]:
    """The trees of treebank files, as a parser is to learn them; those without words are gone."""
    for path in files:
        for tree in read_trees(path, on_bytes):
            cleaned = clean(tree, cleaning)
            if cleaned is not None:
                yield cleaned


def trees_to_pairs(
    files: Iterable[Path], tags: Tags = "XX", cleaning: Cleaning = PARSING
) -> Iterator[tuple[str, str]]:
    """A line of words and a line of symbols for each tree, in order."""
    return (pair_of(tree, tags) for tree in clean_trees(files, cleaning))


def pair_of(tree: Tree, tags: Tags = "XX") -> tuple[str, str]:
    """The two lines of a tree.

    Example:
        >>> from transept.text.trees import parse_tree
        >>> pair_of(parse_tree("(NP (DT the) (NN cat))"))
        ('the cat', '(NP XX XX )NP')
    """
    return " ".join(tree.words), " ".join(linearise(tree, tags))


def write_pairs(
    files: Iterable[Path],
    source: Path,
    target: Path,
    tags: Tags = "XX",
    cleaning: Cleaning = PARSING,
) -> int:
    """Write treebanks as two files, line for line, for `transept data prepare`; count the pairs.

    Both files appear when they are whole.
    """
    n_pairs = 0
    try:
        with replacing(source) as words, replacing(target) as symbols:
            for words_line, symbols_line in trees_to_pairs(files, tags, cleaning):
                words.write(words_line.encode() + b"\n")
                symbols.write(symbols_line.encode() + b"\n")
                n_pairs += 1
    except OSError as error:
        raise DataError(
            f"{source} and {target}: cannot be written ({error.strerror}); choose other files"
        ) from error
    return n_pairs
