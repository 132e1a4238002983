"""The shape of the house, as `make check` enforces it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    path.parent.relative_to(ROOT / "src").as_posix(): ast.get_docstring(ast.parse(path.read_text()))
    for path in sorted((ROOT / "src").rglob("__init__.py"))
}
GUIDES = [name for name, said in PACKAGES.items() if said and "In reading order:" in said]


def test_imports_point_downwards() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


def test_importing_transept_does_not_import_torch() -> None:
    code = "import sys, transept; transept.ModelConfig; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_drawer_for_odds_and_ends() -> None:
    forbidden = {"utils", "util", "helpers", "common", "misc", "registry", "base"}
    names = {path.stem for path in (ROOT / "src").rglob("*.py")}
    assert not names & forbidden


@pytest.mark.parametrize("package", GUIDES)
def test_a_package_that_tells_in_which_order_to_read_it_leaves_no_module_out(package: str) -> None:
    folder = ROOT / "src" / package
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
    named = set(re.findall(r"`([a-z_0-9]+)`", PACKAGES[package] or ""))
    assert not modules - named, "a reader does not hear of these"
    # Of what is not here, only a dotted name can be meant.
    assert not named - modules, "these are not there"


def test_some_packages_do_tell() -> None:
    assert {f"transept/{name}" for name in ("model", "decoding", "text", "engines")} <= {*GUIDES}
