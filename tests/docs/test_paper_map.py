"""Every row of the paper map leads to a symbol that exists and to a test that exists."""

import ast
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = ROOT / "docs" / "paper-map.md"

SECTIONS = ["3.1", "3.2.2", "3.2.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4", "6.1", "6.3"]
NUMBERED = [
    *(f"Equation ({number})" for number in (1, 2, 3)),
    *(f"Table {number}" for number in (1, 2, 3, 4)),
    *(f"Figure {number}" for number in (1, 2, 3, 4, 5)),
    *(f"Table 3, row {row}" for row in "ABCDE"),
]


class Row(NamedTuple):
    place: str
    symbol: str
    test: str


def rows() -> list[Row]:
    """The lines of tables with a symbol and a test; the last section has neither."""
    mapped = MAP.read_text(encoding="utf-8").split("## What is not here")[0]
    lines = [line for line in mapped.splitlines() if line.startswith("| ")]
    found = []
    for line in lines:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells[2:] != ["symbol", "test"]:
            found.append(Row(cells[0], *(cell.strip("`") for cell in cells[2:])))
    return found


@cache
def functions_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.place}-{row.symbol}")
def test_a_row_leads_somewhere(row: Row) -> None:
    module, _, name = row.symbol.partition(":")
    found: object = import_module(f"transept.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    file, _, test = row.test.partition("::")
    assert test in functions_in(ROOT / "tests" / file), f"{row.test} is no test"


def test_the_whole_paper_is_on_the_map() -> None:
    places = [row.place for row in rows()]
    missing = [
        wanted
        for wanted in [*SECTIONS, *NUMBERED]
        if not any(re.search(rf"(^|, ){re.escape(wanted)}(?![\d.])", place) for place in places)
    ]
    assert not missing, f"not in {MAP.name}: {missing}"
