"""What stands for a word in a linearised tree.

    XX         no more than that there is one (Vinyals et al. 2015)
    NN         its tag
    NN(cat)    its tag and the word itself, where that is a common one

A decoder must know which word comes next, and has only its attention to find out. Words that its
own output names are landmarks: between two of them there is little to lose its place in.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from transept.text.trees import Tree, escape

XX: Final = "XX"
COMMON: Final = 20
"""How often a word must occur to be named, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class NamedLeaves:
    """Tags that name their word, where that gives one of these; the bare tag elsewhere."""

    leaves: frozenset[str]

    def __str__(self) -> str:
        return "named"

    @classmethod
    def common(cls, trees: Iterable[Tree], at_least: int = COMMON) -> "NamedLeaves":
        """Those of the words that occur so often, with each tag that they have somewhere."""
        tagged = Counter(pair for tree in trees for pair in zip(tree.tags, tree.words, strict=True))
        words: Counter[str] = Counter()
        for (_, word), count in tagged.items():
            words[word] += count
        return cls(frozenset(named(*pair) for pair in tagged if words[pair[1]] >= at_least))


Tags = Literal["XX", "kept"] | NamedLeaves
"""What stands for a word: XX, which leaves tagging to others, its tag, or a tag that names it."""
TagsName = Literal["XX", "kept", "named"]
"""How people call these."""


def leaves_over(tree: Tree, tags: Tags) -> tuple[str, ...]:
    """What stands for each word of a tree."""
    if tags == "XX":
        return (XX,) * len(tree.words)
    if tags == "kept":
        return tree.tags
    pairs = zip(tree.tags, tree.words, strict=True)
    return tuple(leaf if (leaf := named(*pair)) in tags.leaves else pair[0] for pair in pairs)


def named(tag: str, word: str) -> str:
    """A tag that names its word; neither holds a bracket, once it is escaped."""
    return f"{tag}({escape(word)})"


def tag_of(leaf: str) -> str:
    """The tag alone.

    Example:
        >>> tag_of("NN(cat)"), tag_of("NN")
        ('NN', 'NN')
    """
    return leaf.partition("(")[0]


def word_of(leaf: str) -> str:
    """The word that a leaf names, escaped; nothing if it names none.

    Example:
        >>> word_of("NN(cat)"), word_of("NN")
        ('cat', '')
    """
    return leaf.partition("(")[2].removesuffix(")")
