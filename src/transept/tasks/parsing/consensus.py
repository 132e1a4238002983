"""What several trees of a sentence agree on."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from transept.text.trees import Bracket, Tree

_Vote = tuple[Bracket, int]
"""A constituent, and how many like it there are around it: (NP (NP …)) over the same words."""


def consensus(trees: Sequence[Tree], log_probabilities: Sequence[float]) -> Tree:
    """The constituents that more than half of the probability is for.

    Any two of them are together in at least one of the trees, so none crosses another. Where there
    is no such root, it is the first tree's.

    Example:
        >>> from transept.text.trees import parse_tree
        >>> one = parse_tree("(S (NP (A a) (B b)) (C c))")
        >>> two = parse_tree("(S (A a) (VP (B b) (C c)))")
        >>> str(consensus([one, two], [math.log(0.6), math.log(0.4)]))
        '(S (NP (A a) (B b)) (C c))'
        >>> str(consensus([one, two], [math.log(0.5), math.log(0.5)]))
        '(S (A a) (B b) (C c))'
    """
    votes: defaultdict[_Vote, float] = defaultdict(float)
    depths: defaultdict[_Vote, float] = defaultdict(float)
    for tree, share in zip(trees, _shares(log_probabilities), strict=True):
        alike: Counter[Bracket] = Counter()
        around: Counter[tuple[int, int]] = Counter()
        for bracket in tree.brackets:
            vote, words = (bracket, alike[bracket]), (bracket.start, bracket.end)
            votes[vote] += share
            depths[vote] += share * around[words]
            alike[bracket] += 1
            around[words] += 1
    best = trees[0]
    elected = [vote for vote, share in votes.items() if share > 0.5]
    if not any(_spans_all(bracket, best) for bracket, _ in elected):
        elected.append((best.brackets[0], 0))
    # Over the same words, as the trees have them on average.
    elected.sort(key=lambda vote: (vote[0].start, -vote[0].end, depths[vote] / votes[vote]))
    return Tree(best.words, best.tags, tuple(bracket for bracket, _ in elected))


def _shares(log_probabilities: Sequence[float]) -> list[float]:
    """Probabilities that add up to 1."""
    highest = max(log_probabilities)
    weights = [math.exp(one - highest) for one in log_probabilities]
    return [weight / sum(weights) for weight in weights]


def _spans_all(bracket: Bracket, tree: Tree) -> bool:
    return bracket.end - bracket.start == len(tree.words)
