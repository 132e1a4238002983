"""`torchrun … -m transept recipe run`: all ranks train, and rank 0 does the other stages."""

import json
from pathlib import Path

import pytest
from tests.integration.kitchen import Kitchen
from tests.integration.ranks import on_ranks

from transept.training.observers import read_metrics


def words(kitchen: Kitchen, work: Path, *more: str) -> list[str]:
    command = ["recipe", "run", str(kitchen.recipe), "--work", str(work)]
    return ["2", *command, "experiment.training.max_steps=10", *more]


@pytest.mark.slow
def test_recipe_run_trains_on_both_ranks_and_writes_one_report(
    kitchen: Kitchen, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    two = "experiment.batch.micro_batches=2"
    result = on_ranks(*words(kitchen, work, two, "--data", str(kitchen.data)))
    assert result.returncode == 0, result.stderr
    stages = [line.split()[0] for line in result.stdout.splitlines() if line[:1].isalpha()]
    assert stages[:7] == [*("prepare", "train", "average", "decode", "score", "package", "report")]
    (start,) = (
        line for line in read_metrics(work / "run/metrics.jsonl") if line["kind"] == "start"
    )
    assert start["ranks"] == 2
    trained = json.loads((work / "record.json").read_bytes())["stages"]["train"]["results"]
    assert trained["step"] == 10
    assert trained["device_seconds"] == 2 * trained["seconds"]


@pytest.mark.slow
def test_recipe_run_refuses_too_few_micro_batches_before_it_prepares(
    kitchen: Kitchen, tmp_path: Path
) -> None:
    result = on_ranks(*words(kitchen, tmp_path / "work", "--data", str(kitchen.data)))
    assert result.returncode != 0
    message = "experiment.batch.micro_batches: 1 cannot be divided among 2 ranks"
    assert message in result.stderr
    assert not (tmp_path / "work").exists()
