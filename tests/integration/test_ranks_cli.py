"""One run on 1, 2 and 4 ranks, and on another number of them every few steps."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.ranks import train
from tests.integration.workshop import Workshop

import transept
from transept.checkpoint import Checkpoints
from transept.training.observers import read_metrics

pytestmark = pytest.mark.slow

STEPS = 16
SETTINGS = (
    *("batch.micro_batches=4", "batch.source_tokens=1200", "batch.target_tokens=1200"),
    *("batch.window=200", "checkpoint.every_steps=none", "validation.every_steps=100"),
    *("validation.bleu_every_steps=8", "validation.bleu_sentences=20", "validation.metric=chrf"),
)


def steps(output: Path) -> list[dict[str, Any]]:
    return [line for line in read_metrics(output / "metrics.jsonl") if line["kind"] == "step"]


@pytest.fixture(scope="module")
def runs(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("runs")
    names = ["alone", "two", "four", "changing", "sharded"]
    paths = {name: directory / name for name in names}
    all_steps = (
        *SETTINGS,
        f"training.max_steps={STEPS}",
    )
    sharded = (*SETTINGS, "distributed.optimizer=sharded", "training.ema_decay=0.9")
    train(
        workshop,
        (0, paths["alone"], all_steps),
        (2, paths["two"], all_steps),
        (4, paths["four"], all_steps),
        (0, paths["changing"], (*SETTINGS, "training.max_steps=4")),
        (4, paths["changing"], (*SETTINGS, "training.max_steps=8")),
        (2, paths["changing"], all_steps),
        (3, paths["sharded"], ("training.max_steps=4", *sharded)),
        (2, paths["sharded"], ("training.max_steps=6", *sharded)),
    )
    return paths


def test_batches_do_not_depend_on_the_number_of_ranks(runs: dict[str, Path]) -> None:
    hashes = [line["batch"] for line in steps(runs["alone"])]
    assert len(set(hashes)) == STEPS
    for name in ("two", "four", "changing"):
        assert [line["batch"] for line in steps(runs[name])] == hashes, name
    # The number of ranks changed in the middle of an epoch, and the run reached the next.
    assert {line["epoch"] for line in steps(runs["changing"])} == {0, 1}
    assert steps(runs["changing"])[8]["epoch"] == 0


def test_losses_agree_through_a_change_of_size(runs: dict[str, Path]) -> None:
    expected = [line["loss"] for line in steps(runs["alone"])]
    for name in ("two", "four", "changing"):
        assert [line["loss"] for line in steps(runs[name])] == pytest.approx(expected, rel=1e-4)


def test_rank_0_translates_and_all_ranks_agree_on_the_best_step(runs: dict[str, Path]) -> None:
    for name in ("alone", "two", "four", "changing"):
        lines = [x for x in read_metrics(runs[name] / "metrics.jsonl") if x["kind"] == "quality"]
        assert {line["step"] for line in lines} >= {8, 16}, name
        assert all(line["sentences"] == 20 for line in lines)
        # Translated by a single process, the same weights give the same scores.
        newest = Checkpoints(runs[name] / "checkpoints").newest()
        assert newest is not None
        model = transept.load(newest.directory, device="cpu")
        samples = lines[-1]["samples"]
        sources = [x["source"] for x in samples]
        found = model.translate(sources, beam_size=1, split=False, raw=True)
        texts = [one.text.replace("\ufffd", "") for one in found]
        assert texts == [x["output"] for x in samples], name
        best = max(lines, key=lambda line: line["chrf"])
        assert (newest.state()["best_step"], newest.state()["best"]) == (best["step"], best["chrf"])


def test_only_rank_0_writes_and_reports_changed_ranks(runs: dict[str, Path]) -> None:
    lines = read_metrics(runs["changing"] / "metrics.jsonl")
    assert [line["ranks"] for line in lines if line["kind"] == "start"] == [1, 4, 2]
    warnings = [line["text"] for line in lines if line["kind"] == "warning"]
    assert any("ranks changed from 1 to 4" in text for text in warnings)
    assert [line["step"] for line in steps(runs["changing"])] == list(range(1, STEPS + 1))


def test_sharded_run_resumes_with_a_different_number_of_shards(runs: dict[str, Path]) -> None:
    lines = read_metrics(runs["sharded"] / "metrics.jsonl")
    assert any("evenly among 3 ranks" in line.get("text", "") for line in lines)
    expected = [line["loss"] for line in steps(runs["alone"])[:6]]
    assert [line["loss"] for line in steps(runs["sharded"])] == pytest.approx(expected, rel=1e-4)
    newest = Checkpoints(runs["sharded"] / "checkpoints").newest()
    assert newest is not None
    moments = {name.removeprefix("adam.mean.") for name in newest.training() if "mean" in name}
    assert moments == newest.weights().keys()


def test_too_few_micro_batches_are_rejected_with_a_remedy(
    workshop: Workshop, tmp_path: Path
) -> None:
    words = ["2", "train", str(workshop.config), "--output", str(tmp_path / "run")]
    result = subprocess.run(
        [sys.executable, "-m", "tests.integration.ranks", *words],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "ranks ended with [2, 2]" in result.stderr
    assert result.stderr.count("batch.micro_batches: 1 cannot be divided among 2 ranks") == 1
    assert "set batch.micro_batches=2" in result.stderr
    assert not (tmp_path / "run").exists()
