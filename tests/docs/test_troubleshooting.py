"""The errors that the page on troubleshooting explains are those of the program."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
HOLE = "…"


def messages() -> list[str]:
    """What the page quotes in the first column of its tables."""
    rows = re.findall(r"^\| `(.+?)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 20
    return rows


@cache
def said() -> str:
    """Every string of the package, with a hole for each value that is filled in."""
    files = sorted((ROOT / "src").rglob("*.py"))
    return "\0".join(text for file in files for text in strings(file))


def strings(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else HOLE for v in node.values)
            yield "".join(map(str, parts))


@pytest.mark.parametrize("message", messages())
def test_a_message_is_the_programs(message: str) -> None:
    # A hole may stand for a value, or for the rest of a sentence that holds code. At an end it
    # matches anything. Searching for it there would take quadratic time.
    pattern = "[^\0]*?".join(map(re.escape, message.strip(HOLE).split(HOLE)))
    assert re.search(pattern, said()), f"nobody says: {message}"
