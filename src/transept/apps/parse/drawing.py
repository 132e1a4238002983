"""Trees as indented text and as a picture."""

from collections.abc import Sequence

from transept.apps.svg import (
    FONT_SIZE,
    LETTER,
    MARGIN,
    Label,
    Panel,
    Picture,
    Shape,
    Stroke,
    text_width,
)
from transept.tasks.parsing.leaves import XX
from transept.text.trees import Tree, escape

ROW = 3 * FONT_SIZE
"""The distance between two rows of constituents."""


def indented(tree: Tree) -> str:
    """The tree on several lines. A constituent that contains only words is on one line."""
    around = set(_parents(tree))
    pairs = zip(tree.tags, tree.words, strict=True)
    leaves = [f"({escape(tag)} {escape(word)})" for tag, word in pairs]
    lines: list[str] = []
    unfinished: list[bool] = []  # whether each open bracket contains only words
    n_opened = 0
    for token in tree.depth_first(leaves, lambda _: ")"):
        if token == ")":
            lines[-1] += token
            unfinished.pop()
        elif token.endswith(")") and unfinished[-1]:
            lines[-1] += f" {token}"
        else:
            lines.append("  " * len(unfinished) + token)
            if not token.endswith(")"):
                unfinished.append(n_opened not in around)
                n_opened += 1
    return "\n".join(lines)


def draw_trees(trees: Sequence[Tree]) -> Picture:
    """A picture of trees, one below the other, with the words at the bottom of each."""
    panels, y = [], MARGIN
    for tree in trees:
        panels.append(_draw(tree).at(MARGIN, y))
        y += panels[-1].height + MARGIN
    width = max((panel.width for panel in panels), default=0.0)
    description = " ".join(panel.title for panel in panels)
    return Picture("Parse trees", description, width + 2 * MARGIN, y, tuple(panels))


def _draw(tree: Tree) -> Panel:
    words, width = _columns(tree)
    parents, owners = _parents(tree), _owners(tree)
    heights, centres = _layout(tree, words, parents, owners)
    foot = max(heights) * ROW + FONT_SIZE / 2

    def joined(bracket: int, x: float, y: float) -> Stroke:
        """A line from a constituent to one of its children."""
        above = foot - heights[bracket] * ROW
        return Stroke(centres[bracket], above + 0.7 * FONT_SIZE, x, y - 0.7 * FONT_SIZE)

    lines: list[Shape] = []
    labels: list[Shape] = []
    for bracket, parent in enumerate(parents):
        x, y = centres[bracket], foot - heights[bracket] * ROW
        labels.append(Label(x, y, tree.brackets[bracket].label, "strong", head=0))
        if parent is not None:
            lines.append(joined(parent, x, y))
    for x, owner, word, tag in zip(words, owners, tree.words, tree.tags, strict=True):
        lines.append(joined(owner, x, foot))
        labels.append(Label(x, foot, word))
        if tag != XX:
            labels.append(Label(x, foot + 1.2 * FONT_SIZE, tag, "faint"))
    return Panel(str(tree), width, foot + 2 * FONT_SIZE, (*lines, *labels))


def _columns(tree: Tree) -> tuple[list[float], float]:
    """The centre of each word, and the total width."""
    middles, right = [], 0.0
    for word, tag in zip(tree.words, tree.tags, strict=True):
        width = max(text_width(word), text_width(tag), 2 * LETTER) + LETTER
        middles.append(right + width / 2)
        right += width
    return middles, right


def _layout(
    tree: Tree, words: Sequence[float], parents: Sequence[int | None], owners: Sequence[int]
) -> tuple[list[int], list[float]]:
    """The height of each bracket above the words, in rows, and its horizontal centre."""
    held: list[list[float]] = [[] for _ in tree.brackets]
    for place, owner in enumerate(owners):
        held[owner].append(words[place])
    heights, centres = [1] * len(held), [0.0] * len(held)
    for bracket in reversed(range(len(held))):  # inner brackets open later than outer ones
        centres[bracket] = (min(held[bracket]) + max(held[bracket])) / 2
        parent = parents[bracket]
        if parent is not None:
            held[parent].append(centres[bracket])
            heights[parent] = max(heights[parent], heights[bracket] + 1)
    return heights, centres


def _parents(tree: Tree) -> list[int | None]:
    """The parent of each bracket."""
    parents: list[int | None] = []
    unfinished: list[int] = []
    for number, bracket in enumerate(tree.brackets):
        while unfinished and tree.brackets[unfinished[-1]].end <= bracket.start:
            unfinished.pop()
        parents.append(unfinished[-1] if unfinished else None)
        unfinished.append(number)
    return parents


def _owners(tree: Tree) -> list[int]:
    """The innermost bracket around each word."""
    owners = [0] * len(tree.words)
    for number, (_, start, end) in enumerate(tree.brackets):
        owners[start:end] = [number] * (end - start)
    return owners
