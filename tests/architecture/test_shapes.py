"""The letters of shape annotations are those of the legend, and the legend's are in use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from transept import shapes

PACKAGE = Path(__file__).parents[2] / "src" / "transept"
KINDS = ("Float", "Int", "Bool")


def legend() -> set[str]:
    """Of each row of the table the first column, and what the second adds in brackets."""
    assert shapes.__doc__ is not None
    rows = re.findall(r"^\| ([A-Z]\S*(?:, [A-Z]\S*)*) +\| (.*?) *\|$", shapes.__doc__, re.MULTILINE)
    first = {letter for axes, _ in rows for letter in axes.split(", ")}
    return first | {letter for _, text in rows for letter in re.findall(r"\b([NV][st]) ", text)}


def axes(text: str) -> Iterator[str]:
    """The axes that are written in letters, in annotations such as `Float[Tensor, "N D"]`."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in KINDS
            and isinstance(node.slice, ast.Tuple)
            and isinstance(node.slice.elts[1], ast.Constant)
        ):
            yield from re.findall(r"\b[A-Z]\w*", str(node.slice.elts[1].value))


def letters(axis: str) -> list[str]:
    """The legend's letters that an axis is the product of; none where it is not."""
    known = "|".join(sorted(legend(), key=len, reverse=True))
    return re.findall(known, axis) if re.fullmatch(f"(?:{known})+", axis) else []


def test_every_axis_is_in_the_legend_and_the_legend_holds_no_other() -> None:
    used = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        for axis in axes(path.read_text(encoding="utf-8")):
            assert letters(axis), f"{path}: the axis {axis} is not in the legend of shapes.py"
            used |= {*letters(axis)}
    assert used == legend()


def test_an_unknown_letter_is_seen() -> None:
    found = axes('def f(x: Float[Tensor, "N 2 HDk Q tiles"]) -> Int[Tensor, " V"]: ...')
    assert sorted(found) == ["HDk", "N", "Q", "V"]
    assert letters("HDk") == ["H", "Dk"]
    assert letters("Q") == letters("HQ") == []
