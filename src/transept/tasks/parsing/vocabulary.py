"""The vocabulary of the target side: each symbol of a linearised tree is one id."""

from collections.abc import Iterable
from dataclasses import dataclass

from transept.errors import VocabularyError
from transept.tasks.parsing.linearisation import CLOSE, OPEN, XX, Tags
from transept.text.symbols import FIRST_SYMBOL, Symbols
from transept.text.trees import Tree


def tree_vocabulary(trees: Iterable[Tree], tags: Tags = "XX") -> Symbols:
    """What linearised trees are made of: XX or tags, opening brackets, closing brackets."""
    labels: set[str] = set()
    leaves: set[str] = set() if tags == "kept" else {XX}
    for tree in trees:
        labels.update(bracket.label for bracket in tree.brackets)
        if tags == "kept":
            leaves.update(tree.tags)
    return vocabulary_of(labels, leaves)


def vocabulary_of(labels: Iterable[str], leaves: Iterable[str] = (XX,)) -> Symbols:
    """The vocabulary of these labels, and of what stands for words."""
    ordered = sorted(labels)
    return Symbols(
        [
            *sorted(leaves),
            *(OPEN + label for label in ordered),
            *(CLOSE + label for label in ordered),
        ]
    )


def tags_of(vocabulary: Symbols) -> Tags:
    """Whether the trees of a vocabulary keep their tags."""
    leaves = Roles.of(vocabulary).leaves
    return "XX" if leaves == (vocabulary.ids.get(XX),) else "kept"


@dataclass(frozen=True, slots=True)
class Roles:
    """Which ids of a vocabulary open which brackets, close them, or stand for words."""

    labels: tuple[str, ...]
    """Those that can be opened and closed."""
    openers: tuple[int, ...]
    """The id that opens each label."""
    closers: tuple[int, ...]
    """The id that closes each label."""
    leaves: tuple[int, ...]

    @classmethod
    def of(cls, vocabulary: Symbols) -> "Roles":
        """Tell the symbols apart by how they begin."""
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
        if not labels or not leaves:
            raise VocabularyError(
                "no tree can be written in this vocabulary: it needs a bracket to open and to "
                "close, and a symbol for words; make it with `tree_vocabulary`"
            )
        return cls(
            labels,
            tuple(ids[OPEN + label] for label in labels),
            tuple(ids[CLOSE + label] for label in labels),
            leaves,
        )
