"""A small version of Table 4's benchmark: rows of separate commands are in one record."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "table4.py"
FEW = ["training.max_steps=40", "validation.every_steps=10", "checkpoint.every_steps=10"]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    # Networks this small gain nothing from threads, which wait for one another on a busy machine.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.mark.slow
def test_record_contains_the_rows_of_separate_commands(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    usual = ["--quick", "--work", tmp_path, "--json", file, "--settings", *FEW]
    for name in ("paper", "named"):
        done = run(*usual, "--rows", name)
        assert done.returncode == 0, done.stderr
    record = json.loads(file.read_text())
    found = {(row["system"], row["work"], row["unit"]): row["value"] for row in record["rows"]}
    assert list(dict.fromkeys(system for system, _, _ in found)) == [
        "the paper's setting",
        "named words",
    ]
    for system in ("the paper's setting", "named words"):
        assert found[system, "training", "steps"] == 40
        assert 0 < found[system, "training", "passes"] < 1
        losses = [work for one, work, unit in found if one == system and unit.startswith("−log p")]
        assert losses == ["dev, step 10", "dev, step 20", "dev, step 40", "dev, lowest"]
        assert 0 <= found[system, "test", "F1"] <= 100
        assert 0 <= found[system, "test, without the constraint", "% malformed"] <= 100
    # The words are represented by what the row says.
    kept = {tags: tmp_path / "corpora" / tags / "train" for tags in ("XX", "named")}
    sizes = {
        tags: json.loads((path / "manifest.json").read_text())["target"]["vocab_size"]
        for tags, path in kept.items()
    }
    assert sizes["XX"] < sizes["named"]
