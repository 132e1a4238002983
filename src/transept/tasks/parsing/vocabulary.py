"""The vocabulary of the target side: each symbol of a linearised tree is one id."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transept.errors import DataError, VocabularyError
from transept.tasks.parsing.leaves import COMMON, XX, NamedLeaves, Tags, TagsName, word_of
from transept.tasks.parsing.linearisation import CLOSE, OPEN
from transept.tasks.parsing.pairs import clean_trees
from transept.text.symbols import FIRST_SYMBOL, Symbols
from transept.text.trees import Tree


def treebank_vocabulary(
    files: Sequence[Path], tags: TagsName = "XX", common: int = COMMON
) -> Symbols:
    """Build the vocabulary of treebank files; with named tags, words that occur `common` times."""
    if next(clean_trees(files), None) is None:
        raise DataError(f"{', '.join(map(str, files))}: no trees found")
    chosen = NamedLeaves.common(clean_trees(files), common) if tags == "named" else tags
    return tree_vocabulary(clean_trees(files), chosen)


def tree_vocabulary(trees: Iterable[Tree], tags: Tags = "XX") -> Symbols:
    """Build the vocabulary of trees: leaves, opening brackets and closing brackets."""
    labels: set[str] = set()
    leaves: set[str] = {XX} if tags == "XX" else set()
    for tree in trees:
        labels.update(bracket.label for bracket in tree.brackets)
        if tags != "XX":
            leaves.update(tree.tags)
    return vocabulary_of(labels, leaves | tags.leaves if isinstance(tags, NamedLeaves) else leaves)


def vocabulary_of(labels: Iterable[str], leaves: Iterable[str] = (XX,)) -> Symbols:
    """Build the vocabulary of these labels and leaves."""
    ordered = sorted(labels)
    return Symbols(
        [
            *sorted(leaves),
            *(OPEN + label for label in ordered),
            *(CLOSE + label for label in ordered),
        ]
    )


def tags_of(vocabulary: Symbols) -> Tags:
    """Return which tags the trees of a vocabulary use for words."""
    leaves = vocabulary.symbols_of(Roles.of(vocabulary).leaves)
    naming = frozenset(filter(word_of, leaves))
    if naming:
        return NamedLeaves(naming)
    return "XX" if leaves == [XX] else "kept"


@dataclass(frozen=True, slots=True)
class Roles:
    """The ids of a vocabulary that open brackets, close them, or represent words."""

    labels: tuple[str, ...]
    """The labels with both an opening and a closing bracket."""
    openers: tuple[int, ...]
    """The id that opens each label."""
    closers: tuple[int, ...]
    """The id that closes each label."""
    leaves: tuple[int, ...]

    @classmethod
    def of(cls, vocabulary: Symbols) -> "Roles":
        """Classify the symbols by their first character."""
        ids = vocabulary.ids
        labels = tuple(
            symbol[1:]
            for symbol in vocabulary.symbols
            if symbol[0] == OPEN and CLOSE + symbol[1:] in ids
        )
        leaves = tuple(
            index
            for index, symbol in enumerate(vocabulary.symbols, start=FIRST_SYMBOL)
            if symbol[0] not in (OPEN, CLOSE)
        )
        if not labels or all(map(word_of, vocabulary.symbols_of(leaves))):
            raise VocabularyError(
                "this vocabulary cannot express trees: it needs an opening and a closing bracket, "
                "and a symbol for any word; build it with `tree_vocabulary`"
            )
        return cls(
            labels,
            tuple(ids[OPEN + label] for label in labels),
            tuple(ids[CLOSE + label] for label in labels),
            leaves,
        )
