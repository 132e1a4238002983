"""Further trees to learn from: those of a treebank with constituents exchanged.

A network that sees a few ten thousand trees hundreds of times learns them by heart. What stands in
a place of a tree could stand in the same place of another, so each tree makes many (Jia and Liang,
2016, https://arxiv.org/abs/1606.03622; Shi et al., 2021, https://arxiv.org/abs/2101.00411). They
need not make sense: their brackets are right.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from transept.text.trees import Bracket, Tree

CHANCE: Final = 0.15
"""Of a constituent to be exchanged, if none around it is."""


class Place(NamedTuple):
    """Where a constituent may stand: constituents of the same place can be exchanged."""

    label: str
    parent: str
    size: int
    """Bits of the number of words: a tree keeps its length by and large."""


def recombined(
    trees: Sequence[Tree], copies: int, *, seed: int = 0, chance: float = CHANCE
) -> Iterator[Tree]:
    """As many further trees of each, one after the other, that differ from it.

    A tree that can make no other, such as one of a single constituent, is left out.
    """
    donors: dict[Place, list[tuple[Tree, int]]] = defaultdict(list)
    for tree in trees:
        for inner, place in _places(tree):
            donors[place].append((tree, inner))
    random = Random(seed)
    for _ in range(copies):
        for tree in trees:
            other = _exchanged(tree, donors, random, chance)
            if other != tree:
                yield other


def _exchanged(
    tree: Tree, donors: dict[Place, list[tuple[Tree, int]]], random: Random, chance: float
) -> Tree:
    chosen: list[tuple[int, Place]] = []
    within = 0
    for inner, place in _places(tree):
        start, end = tree.brackets[inner][1:]
        if start >= within and random.random() < chance:
            chosen.append((inner, place))
            within = end
    # From the right: what is left of an exchange keeps its numbers.
    for inner, place in reversed(chosen):
        tree = exchange(tree, inner, *random.choice(donors[place]))
    return tree


def _places(tree: Tree) -> Iterator[tuple[int, Place]]:
    """Every constituent but the root, by its number."""
    around: list[Bracket] = []
    for number, bracket in enumerate(tree.brackets):
        while around and around[-1].end <= bracket.start:
            around.pop()
        if around:
            size = (bracket.end - bracket.start).bit_length()
            yield number, Place(bracket.label, around[-1].label, size)
        around.append(bracket)


def exchange(tree: Tree, number: int, donor: Tree, donated: int) -> Tree:
    """The tree with a constituent of another in the place of one of its own.

    Example:
        >>> from transept.text.trees import parse_tree
        >>> tree = parse_tree("(S (NP (NN cats)) (VP (VBP sleep)))")
        >>> other = parse_tree("(S (NP (DT the) (NN owl)) (VP (VBZ is) (NP (NN back))))")
        >>> str(exchange(tree, 1, other, 1))
        '(S (NP (DT the) (NN owl)) (VP (VBP sleep)))'
    """
    _, start, end = tree.brackets[number]
    _, first, last = donor.brackets[donated]
    longer = (last - first) - (end - start)
    shift = start - first
    before = (
        Bracket(label, left, right + longer if right >= end else right)
        for label, left, right in tree.brackets[:number]
    )
    inside = (
        Bracket(label, left + shift, right + shift)
        for label, left, right in donor.brackets[donated : _after(donor, donated)]
    )
    after = (
        Bracket(label, left + longer, right + longer)
        for label, left, right in tree.brackets[_after(tree, number) :]
    )
    return Tree(
        (*tree.words[:start], *donor.words[first:last], *tree.words[end:]),
        (*tree.tags[:start], *donor.tags[first:last], *tree.tags[end:]),
        (*before, *inside, *after),
    )


def _after(tree: Tree, number: int) -> int:
    """The number of the first bracket that is not inside this one."""
    end = tree.brackets[number].end
    return next(
        (later for later in range(number + 1, len(tree.brackets))
         if tree.brackets[later].start >= end),
        len(tree.brackets),
    )  # fmt: skip
