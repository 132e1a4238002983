"""The letters of shape annotations are those of the legend. The tests check the annotations."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from tests.shape_checks import checked

from transept import shapes
from transept.decoding.step import Hypothesis, length_penalty
from transept.model.attention import reference_attention
from transept.shapes import Float, Tensor

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


def test_wrong_shapes_and_wrong_types_are_rejected_in_tests() -> None:
    q, k, v = torch.randn(3, 1, 2, 4, 8)
    mask = torch.ones(1, 4, 4, dtype=torch.bool)
    assert reference_attention(q, k, v, mask).shape == (1, 2, 4, 8)
    with pytest.raises(BeartypeCallHintViolation, match=r"dimension H is 1 .* value of 2"):
        reference_attention(q, k, v[:, :1], mask)
    word: Any = "one"
    with pytest.raises(BeartypeCallHintViolation):
        length_penalty(word, 0.6)
    with pytest.raises(BeartypeCallHintViolation):
        Hypothesis(word, 0.0, 0.0, True)


def test_result_is_compared_with_the_sizes_of_the_arguments() -> None:
    @checked(typechecker=beartype)
    def shortened(x: Float[Tensor, "N D"], by: int) -> Float[Tensor, "N D"]:
        return x[by:] if by < 3 else shortened(x[:1], by - 3)

    assert shortened(torch.zeros(3, 2), 0).shape == (3, 2)
    for by in (1, 3):
        with pytest.raises(BeartypeCallHintViolation, match=r"dimension N is [12] .* value of 3"):
            shortened(torch.zeros(3, 2), by)
