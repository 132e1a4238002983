"""A class name is defined once in the package, so that a search for it finds one thing."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "transept"


def test_no_class_name_is_defined_in_two_modules() -> None:
    defined: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert len(defined) > 100
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}
