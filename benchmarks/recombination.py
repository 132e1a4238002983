"""Data augmentation for parsing: exchanges constituents between the trees of a treebank.

A network that sees a few ten thousand trees hundreds of times overfits. A constituent can be
replaced by one from the same context in another tree, so each tree yields many (Jia and Liang,
2016, https://arxiv.org/abs/1606.03622; Shi et al., 2021, https://arxiv.org/abs/2101.00411). They
need not make sense: their brackets are correct.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from transept.text.trees import Bracket, Tree

CHANCE: Final = 0.15
"""The probability that a constituent is exchanged, if none around it is."""


class Context(NamedTuple):
    """The context of a constituent. Constituents with the same context can be exchanged."""

    label: str
    parent: str
    size: int
    """Bits of the number of words, so that trees roughly keep their lengths."""


def recombined(
    trees: Sequence[Tree], copies: int, *, seed: int = 0, chance: float = CHANCE
) -> Iterator[Tree]:
    """Yield `copies` recombined versions of the trees, without those that are unchanged.

    So a tree without possible exchanges, such as one of a single constituent, is omitted.
    """
    donors: dict[Context, list[tuple[Tree, int]]] = defaultdict(list)
    for tree in trees:
        for inner, context in _contexts(tree):
            donors[context].append((tree, inner))
    random = Random(seed)
    for _ in range(copies):
        for tree in trees:
            other = _exchanged(tree, donors, random, chance)
            if other != tree:
                yield other


def _exchanged(
    tree: Tree, donors: dict[Context, list[tuple[Tree, int]]], random: Random, chance: float
) -> Tree:
    chosen: list[tuple[int, Context]] = []
    within = 0
    for inner, context in _contexts(tree):
        start, end = tree.brackets[inner][1:]
        if start >= within and random.random() < chance:
            chosen.append((inner, context))
            within = end
    # From right to left: constituents to the left of an exchange keep their numbers.
    for inner, context in reversed(chosen):
        tree = exchange(tree, inner, *random.choice(donors[context]))
    return tree


def _contexts(tree: Tree) -> Iterator[tuple[int, Context]]:
    """The number and context of every constituent except the root."""
    around: list[Bracket] = []
    for number, bracket in enumerate(tree.brackets):
        while around and around[-1].end <= bracket.start:
            around.pop()
        if around:
            size = (bracket.end - bracket.start).bit_length()
            yield number, Context(bracket.label, around[-1].label, size)
        around.append(bracket)


def exchange(tree: Tree, number: int, donor: Tree, donated: int) -> Tree:
    """Replace a constituent of a tree by one of another tree.

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
