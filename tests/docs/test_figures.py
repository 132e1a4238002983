"""What the documentation says was measured is what was measured."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_of_the_performance_page_are_those_of_the_results() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_tables_of_the_scaling_page_are_those_of_the_model() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "scaling_plan.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_benchmark_has_its_table() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for result in (ROOT / "benchmarks" / "results").glob("*.json"):
        assert f"<!-- {result.stem} -->" in page, f"{result.stem} is not in docs/performance.md"
