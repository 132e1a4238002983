"""A small version of the parsing experiment: it runs at once or in parts, and keeps its record."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "parsing.py"
ALONE, SEMI, BASELINE = "treebank alone", "semi-supervised", "right-branching"
RECOMBINED, TOGETHER = "recombined", "several together"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, words)]
    # Networks this small gain nothing from threads, which wait for one another on a busy machine.
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def figures(record: dict[str, Any]) -> dict[tuple[str, str, str], float]:
    return {(row["system"], row["work"], row["unit"]): row["value"] for row in record["rows"]}


def check_complete(record: dict[str, Any]) -> None:
    found = figures(record)
    ours = found[ALONE, "test", "F1"]
    assert ours > found[BASELINE, "test", "F1"] + 20
    assert found[ALONE, "training", "steps"] == 240
    assert 0 <= found[ALONE, "test, without the constraint", "% malformed"] <= 100
    assert found[ALONE, "test, processes: 1", "sentences/s"] > 0
    beam, alpha = (found[ALONE, "chosen on dev", unit] for unit in ("beam size", "α"))
    on_dev = [f1 for (_, work, _), f1 in found.items() if work.startswith("dev, ")]
    assert found[ALONE, f"dev, beam {beam}, α {alpha}", "F1"] == max(on_dev)
    (goal,) = record["goals"]
    assert (goal["value"], goal["target"], goal["met"]) == (ours, 85.0, ours >= 85.0)


@pytest.mark.slow
def test_stopped_command_resumes_and_writes_a_complete_record(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    usual = ["--quick", "--work", tmp_path, "--json", file]
    done = run(*usual, "--minutes", "0.02", "--train-only")
    assert done.returncode == 0, done.stderr
    assert not file.exists()
    done = run(*usual)
    assert done.returncode == 0, done.stderr
    assert "resuming from step" in done.stderr
    check_complete(json.loads(file.read_text()))
    alone = figures(json.loads(file.read_text()))
    # The score of the first parser is kept next to that of the second.
    more = tmp_path / "trees" / "dev.mrg"
    few = ["--settings", "training.max_steps=30"]
    done = run(*usual, "--semi", more, *few)
    assert done.returncode == 0, done.stderr
    both = figures(json.loads(file.read_text()))
    assert alone.items() <= both.items()
    assert both[SEMI, "training", "steps"] == 30
    # So are those of one that learns from trees of this one's treebank, recombined.
    done = run(*usual, "--recombined", 2, *few)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "recombined" / "recombined-2" / "manifest.json").exists()
    three = figures(json.loads(file.read_text()))
    assert both.items() <= three.items()
    assert three[RECOMBINED, "training", "steps"] == 30
    # A parser and its twin decide as one of them does.
    (model,) = (tmp_path / "alone" / "run").glob("average-*")
    done = run(*usual, "--together", model, model)
    assert done.returncode == 0, done.stderr
    all_four = figures(json.loads(file.read_text()))
    assert three.items() <= all_four.items()
    assert all_four[TOGETHER, "test", "F1"] == both[ALONE, "test", "F1"]


@pytest.mark.slow
def test_the_grid_compares_settings_on_dev(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    few = ["--settings", "training.max_steps=40"]
    done = run("--quick", "--grid", "--at-once", 2, "--json", file, *few)
    assert done.returncode == 0, done.stderr
    found = figures(json.loads(file.read_text()))
    names = {system for system, work, _ in found if work == "dev, greedy, 40 steps"}
    assert names == {"factor 1", "factor 0.5"}
    best = max(found, key=lambda key: found[key])[0]
    assert f"best on dev: {best}; continue with --settings schedule.factor=" in done.stdout


@pytest.mark.slow
def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.mrg").touch()
    done = run("--trees", tmp_path, "--work", tmp_path / "work")
    assert done.returncode == 1
    assert "must contain exactly one file dev.mrg" in done.stderr
