"""The parsing experiment in small: the script runs in pieces, and its record is whole."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "parsing.py"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained in one command for as long as a first checkpoint takes, and not scored."""
    work = tmp_path_factory.mktemp("work")
    done = run("--quick", "--work", work, "--minutes", "0.02", "--train-only")
    assert done.returncode == 0, done.stderr
    assert not (work / "alone" / "scores").exists()
    return work


def test_a_second_command_goes_on_and_writes_the_record(work: Path) -> None:
    file = work / "record.json"
    done = run("--quick", "--work", work, "--json", file)
    assert done.returncode == 0, done.stderr
    assert "going on from step" in done.stderr
    record = json.loads(file.read_text())
    assert record["name"] == "parsing"
    found = {(row["work"], row["system"], row["unit"]): row["value"] for row in record["rows"]}
    ours, baseline = (
        found["test", system, "F1"] for system in ("treebank alone", "right-branching")
    )
    assert ours > baseline + 20
    assert found["training", "treebank alone", "steps"] == 240
    assert 0 <= found["test, without the constraint", "treebank alone", "% no trees"] <= 100
    assert found["test, processes: 1", "treebank alone", "sentences/s"] > 0
    assert chosen(found) == max(f1_on_dev(found))
    (goal,) = record["goals"]
    assert (goal["value"], goal["target"], goal["met"]) == (ours, 85.0, ours >= 85.0)


def f1_on_dev(found: dict[Any, float]) -> list[float]:
    return [value for (work, _, _), value in found.items() if work.startswith("dev, ")]


def chosen(found: dict[Any, float]) -> float:
    beam, alpha = (found["chosen on dev", "treebank alone", unit] for unit in ("beam size", "α"))
    return found[f"dev, beam {beam}, α {alpha}", "treebank alone", "F1"]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    done = run()
    assert done.returncode == 2
    assert "--trees and --work are needed, or --quick" in done.stderr
    (tmp_path / "train.mrg").touch()
    done = run("--trees", tmp_path, "--work", tmp_path / "work")
    assert done.returncode == 1
    assert "there must be one file dev.mrg" in done.stderr
