"""A table is a table: no row stands apart from its head."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_row_belongs_to_a_head_of_as_many_columns(page: Path) -> None:
    for table in tables(page.read_text(encoding="utf-8")):
        assert re.fullmatch(r"\|( *:?-+:? *\|)+", "".join(table[1:2])), f"no head: {table[0]}"
        widths = {row: columns(row) for row in table}
        assert len({*widths.values()}) == 1, widths


def tables(text: str) -> list[list[str]]:
    """Lines that begin with a bar, as they stand together; code is none."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [block.splitlines() for block in blocks]


def columns(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row)))
