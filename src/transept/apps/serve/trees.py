"""Constituency trees in the form of JSON."""

from transept.apps.serve.messages import Node
from transept.text.trees import PLACEHOLDER, Bracket, Tree


def nested(tree: Tree) -> Node:
    """A tree as nodes that contain nodes; the innermost ones hold the words."""
    top = Node(PLACEHOLDER, children=[])
    unfinished: list[tuple[Node, int]] = [(top, len(tree.words))]
    brackets = iter([*tree.brackets, Bracket("", len(tree.words), len(tree.words))])
    bracket = next(brackets)
    for place, (tag, word) in enumerate(zip(tree.tags, tree.words, strict=True)):
        while unfinished[-1][1] <= place:
            unfinished.pop()
        while bracket.start <= place:
            node = Node(bracket.label, children=[])
            _add(unfinished[-1][0], node)
            unfinished.append((node, bracket.end))
            bracket = next(brackets)
        _add(unfinished[-1][0], Node(tag, word=word))
    assert isinstance(top.children, list)
    return top.children[0] if len(top.children) == 1 else top


def _add(parent: Node, child: Node) -> None:
    assert isinstance(parent.children, list)
    parent.children.append(child)
