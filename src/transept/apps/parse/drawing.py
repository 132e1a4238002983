"""Trees for people: indented, and drawn as SVG."""

import re
from collections.abc import Sequence
from html import escape as escape_markup
from typing import Final

from transept.tasks.parsing.leaves import XX
from transept.text.trees import Tree, escape

_ROW: Final = 40
_MARGIN: Final = 16
_CHARACTER: Final = 8
"""Of a font of 14 pixels, with some room: no font is at hand to measure."""
_STYLE: Final = (
    "text{font:14px sans-serif;text-anchor:middle;fill:#222}"
    ".tag{font-size:11px;fill:#777}.label{font-weight:600;fill:#1a4f8b}"
    "line{stroke:#aaa;stroke-width:1}"
)
# XML has no way to write them.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def indented(tree: Tree) -> str:
    """The tree over several lines; a constituent that holds words only takes one."""
    around = set(_parents(tree))
    pairs = zip(tree.tags, tree.words, strict=True)
    leaves = [f"({escape(tag)} {escape(word)})" for tag, word in pairs]
    lines: list[str] = []
    unfinished: list[bool] = []  # whether each open bracket holds words only
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


def svg(trees: Sequence[Tree]) -> str:
    """A picture of trees, one below the other: words at the foot, constituents above them."""
    drawn: list[str] = []
    width, top = 0, 0
    for tree in trees:
        parts, size = _draw(tree, top)
        drawn += parts
        width, top = max(width, size[0]), top + size[1]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}"'
    head += f' width="{width}" height="{top}">'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", ground, *drawn, "</svg>"])


def _draw(tree: Tree, top: int) -> tuple[list[str], tuple[int, int]]:
    """The lines and texts of a tree, and how much room it takes."""
    words, right = _columns(tree)
    parents, owners = _parents(tree), _owners(tree)
    heights, centres = _places(tree, words, parents, owners)
    foot = top + _MARGIN + max(heights) * _ROW + 14

    def y(height: int) -> int:
        return foot - height * _ROW

    lines, texts = [], []
    for bracket, parent in enumerate(parents):
        x, height = centres[bracket], heights[bracket]
        if parent is not None:
            lines.append(_line(centres[parent], y(heights[parent]), x, y(height)))
        texts.append(_text("label", x, y(height), tree.brackets[bracket].label))
    for place, (word, tag) in enumerate(zip(tree.words, tree.tags, strict=True)):
        x, owner = words[place], owners[place]
        lines.append(_line(centres[owner], y(heights[owner]), x, foot))
        texts.append(_text("word", x, foot, word))
        if tag != XX:
            texts.append(_text("tag", x, foot + 14, tag))
    return [*lines, *texts], (right + _MARGIN, foot + 14 + _MARGIN - top)


def _columns(tree: Tree) -> tuple[list[float], int]:
    """The middle of each word, and where the last one ends."""
    middles, right = [], _MARGIN
    for word, tag in zip(tree.words, tree.tags, strict=True):
        width = _CHARACTER * max(len(word), len(tag), 2) + _CHARACTER
        middles.append(right + width / 2)
        right += width
    return middles, right


def _places(
    tree: Tree, words: Sequence[float], parents: Sequence[int | None], owners: Sequence[int]
) -> tuple[list[int], list[float]]:
    """How many rows above the words each bracket stands, and the middle of what it holds."""
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
    """The bracket around each."""
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


def _line(x1: float, y1: int, x2: float, y2: int) -> str:
    return f'<line x1="{x1:g}" y1="{y1 + 5}" x2="{x2:g}" y2="{y2 - 13}"/>'


def _text(kind: str, x: float, y: int, text: str) -> str:
    shown = escape_markup(_CONTROLS.sub("\ufffd", text), quote=False)
    return f'<text class="{kind}" x="{x:g}" y="{y}">{shown}</text>'
