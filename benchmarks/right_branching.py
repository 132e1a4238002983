"""The right-branching baseline: English branches to the right."""

from collections import Counter
from collections.abc import Iterable, Sequence

from transept.text.trees import PLACEHOLDER, Bracket, Tree


def right_branching(tree: Tree, root: str, label: str) -> Tree:
    """A tree over the same words and tags in which every word starts a bracket to the end.

    Punctuation does not start a bracket. At the end, it is attached to the root. Scores ignore it.

    Example:
        >>> from transept.text.trees import parse_tree
        >>> str(right_branching(parse_tree("(X (DT the) (NN cat) (VBZ sleeps) (. .))"), "S", "VP"))
        '(S (DT the) (VP (NN cat) (VBZ sleeps)) (. .))'
    """
    starts = [position for position, tag in enumerate(tree.tags) if _is_word(tag)]
    inner = [Bracket(label, start, starts[-1] + 1) for start in starts[1:-1]]
    return Tree(tree.words, tree.tags, (Bracket(root, 0, len(tree.words)), *inner))


def usual_labels(trees: Iterable[Tree]) -> tuple[str, str]:
    """The most frequent labels of roots, and of inner brackets that end with the sentence."""
    roots: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for tree in trees:
        last = max((position for position, tag in enumerate(tree.tags) if _is_word(tag)), default=0)
        roots.update(bracket.label for bracket in tree.brackets[:1])
        inside.update(bracket.label for bracket in tree.brackets[1:] if bracket.end > last)
    return _first(roots), _first(inside)


def baseline(trees: Sequence[Tree]) -> list[Tree]:
    """Right-branching versions of all trees, with the most frequent labels."""
    root, label = usual_labels(trees)
    return [right_branching(tree, root, label) for tree in trees]


def _is_word(tag: str) -> bool:
    return any(map(str.isalnum, tag))


def _first(counts: Counter[str]) -> str:
    return counts.most_common(1)[0][0] if counts else PLACEHOLDER
