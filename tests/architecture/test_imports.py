"""The shape of the house, as `make check` enforces it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
