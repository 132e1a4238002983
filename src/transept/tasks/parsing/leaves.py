"""The symbols that represent words in a linearised tree.

    XX         any word (Vinyals et al. 2015)
    NN         the word's tag
    NN(cat)    the tag and the word itself, if it is frequent

A decoder must know which word comes next, and can find out only through attention. Words named in
its own output serve as landmarks, between which it rarely loses track of its position.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from transept.text.trees import Tree, escape

XX: Final = "XX"
COMMON: Final = 20
"""Default minimum frequency of a word to be named."""


@dataclass(frozen=True, slots=True)
class NamedLeaves:
    """Use these leaves, which name their word, where possible, and the bare tag elsewhere."""

    leaves: frozenset[str]

    def __str__(self) -> str:
        return "named"

    @classmethod
    def common(cls, trees: Iterable[Tree], at_least: int = COMMON) -> "NamedLeaves":
        """Name the words that occur at least `at_least` times, with each of their tags."""
        tagged = Counter(pair for tree in trees for pair in zip(tree.tags, tree.words, strict=True))
        words: Counter[str] = Counter()
        for (_, word), count in tagged.items():
            words[word] += count
        return cls(frozenset(named(*pair) for pair in tagged if words[pair[1]] >= at_least))


Tags = Literal["XX", "kept"] | NamedLeaves
"""The leaf of a word: XX, which leaves tagging to other tools, its tag, or a tag that names it."""
TagsName = Literal["XX", "kept", "named"]
"""The names of these on the command line."""


def leaves_over(tree: Tree, tags: Tags) -> tuple[str, ...]:
    """Return the leaf of each word of a tree."""
    if tags == "XX":
        return (XX,) * len(tree.words)
    if tags == "kept":
        return tree.tags
    pairs = zip(tree.tags, tree.words, strict=True)
    return tuple(leaf if (leaf := named(*pair)) in tags.leaves else pair[0] for pair in pairs)


def named(tag: str, word: str) -> str:
    """Return a leaf that names its word. Escaped words contain no brackets."""
    return f"{tag}({escape(word)})"


def tag_of(leaf: str) -> str:
    """Return the tag of a leaf.

    Example:
        >>> tag_of("NN(cat)"), tag_of("NN")
        ('NN', 'NN')
    """
    return leaf.partition("(")[0]


def word_of(leaf: str) -> str:
    """Return the escaped word that a leaf names, or an empty string.

    Example:
        >>> word_of("NN(cat)"), word_of("NN")
        ('cat', '')
    """
    return leaf.partition("(")[2].removesuffix(")")
