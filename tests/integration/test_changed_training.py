"""`transept train` resumes a run, with the same or with changed settings."""

import shutil
from pathlib import Path

import pytest
import torch
from tests.integration.workshop import Workshop, prepare_otherwise, run

from transept.checkpoint import Checkpoints
from transept.shelf import model_of
from transept.training.observers import read_metrics


def test_changed_config_is_rejected_unless_allowed(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=5"]
    assert run(*words) == 0
    words[-1] = "training.max_steps=8"
    assert run(*words, "schedule.factor=0.5") == 2
    errors = capsys.readouterr().err
    assert "training.max_steps: 5 -> 8" in errors
    assert "schedule.factor: 1.0 -> 0.5" in errors
    assert run(*words, "schedule.factor=0.5", "--allow-change") == 0
    assert read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]["step"] == 8


@pytest.mark.slow
def test_run_ended_by_early_stopping_resumes_only_with_more_patience(
    workshop: Workshop, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    words = ["train", workshop.config, "--output", output, "schedule.factor=50"]
    words += ["validation.every_steps=1", "checkpoint.every_steps=1"]
    impatient = [*words, "validation.patience=1"]
    assert run(*impatient) == 0
    steps = Checkpoints(output / "checkpoints").steps()
    assert max(steps) < 30
    assert run(*impatient) == 0
    assert Checkpoints(output / "checkpoints").steps() == steps
    assert read_metrics(output / "metrics.jsonl")[-1]["outcome"] == "no longer improving"
    assert run(*words, "validation.patience=30", "--allow-change") == 0
    assert max(Checkpoints(output / "checkpoints").steps()) == 30


def test_replaced_corpus_is_detected(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids, named = tmp_path / "ids", str(workshop.directory / "train-ids")
    mine = tmp_path / "mine.toml"
    mine.write_text(workshop.config.read_text().replace(named, str(ids)))
    words = ["train", mine, "--output", tmp_path / "run", "training.max_steps=2"]
    shutil.copytree(named, ids)
    assert run(*words) == 0
    shutil.rmtree(ids)
    shutil.copytree(workshop.directory / "dev-ids", ids)
    assert run(*words) == 2
    assert f"{ids}: is not the corpus that {tmp_path / 'run'} started with" in errors_of(capsys)
    assert run(*words, "--allow-change") == 0


def errors_of(capsys: pytest.CaptureFixture[str]) -> str:
    """Standard error, without line breaks."""
    return " ".join(capsys.readouterr().err.split())


def test_changed_means_do_not_change_the_config(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=3"]
    assert run(*words) == 0
    means = ["batch.micro_batches=2", "data.workers=1", "training.log_every=1"]
    assert run(*words, *means) == 0, capsys.readouterr().err
    assert run(*words, *means, "model.dropout=0.3") == 2
    assert "config:\n  model.dropout: 0.1 -> 0.3\nChoose" in capsys.readouterr().err


def test_micro_batches_may_change_within_a_window(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=4"]
    sittings = [("4", 75), ("4", 75), ("2", 75), ("1", 0)]
    for micro_batches, code in sittings:
        again = ["--minutes", "1e-9"] if code else []
        assert run(*words, f"batch.micro_batches={micro_batches}", *again) == code
    newest = Checkpoints(tmp_path / "run" / "checkpoints").newest()
    assert newest is not None
    assert newest.state()["position"] == {
        "epoch": 0, "window": 0, "batch": 1, "earlier": [[2, 4], [1, 2]],
    }  # fmt: skip


def test_run_without_steps_accepts_another_config(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=2"]
    assert run(*words, "--init", tmp_path / "nowhere", "model.dropout=0.3") == 4
    assert run(*words) == 0, capsys.readouterr().err


def test_rejected_change_keeps_the_config_of_the_run(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=2"]
    assert run(*words) == 0
    assert run(*words, "model.n_layers=2", "--allow-change") == 4
    assert run(*words) == 0, capsys.readouterr().err


def test_resumed_run_rejects_a_different_init(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "training.max_steps=2"]
    first, tuned = tmp_path / "first", tmp_path / "tuned"
    assert run(*words, "--output", first) == 0
    assert run(*words, "--output", first, "--init", "en-de") == 2
    errors = capsys.readouterr().err
    assert "started from random weights" in errors
    assert "choose another --output" in errors

    assert run(*words, "--output", tuned, "--init", first) == 0
    longer = [*words[:2], "training.max_steps=4", "--allow-change", "--output", tuned]
    assert run(*longer) == 0
    assert run(*longer, "--init", first) == 0
    assert run(*longer, "--init", tmp_path / "other") == 2
    assert f"started from {first}, so --init {tmp_path / 'other'}" in capsys.readouterr().err
    assert Checkpoints(tuned / "checkpoints").newest().about["init"] == str(first)  # type: ignore[union-attr]


def test_moving_average_starts_from_init(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", workshop.config, "training.max_steps=1", "schedule.factor=1e-6"]
    first, tuned = tmp_path / "first", tmp_path / "tuned"
    assert run(*words, "--output", first) == 0
    average = ["training.ema_decay=0.999", "training.seed=2"]
    assert run(*words, *average, "--output", tuned, "--init", first) == 0
    before, after = (Checkpoints(each / "checkpoints").newest() for each in (first, tuned))
    assert before is not None
    assert after is not None
    weights = after.weights()
    for name, weight in before.weights().items():
        torch.testing.assert_close(weights[name], weight, atol=1e-5, rtol=0)


def test_init_rejects_weights_of_a_different_architecture(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another number of heads or another activation does not change the shape of any matrix."""
    words = ["train", workshop.config, "training.max_steps=2"]
    first = tmp_path / "first"
    assert run(*words, "--output", first) == 0
    for change in ("model.n_heads=4", "model.activation=swish", "model.decoder_start=token"):
        assert run(*words, change, "--output", tmp_path / "tuned", "--init", first) == 4
        assert run(*words, change, "--output", first, "--allow-change") == 4
    errors = errors_of(capsys)
    assert "model.n_heads: 2 -> 4" in errors
    assert "model.activation: relu -> swish" in errors
    kind = ["model.dropout=0.3", "model.encoder_window=9"]
    assert run(*words, *kind, "--output", tmp_path / "tuned", "--init", first) == 0
    assert run(*words, *kind, "--output", first, "--allow-change") == 0


def test_resume_rejects_another_vocabulary_of_the_same_size(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=2"]
    assert run(*words) == 0
    ids = prepare_otherwise(tmp_path)
    other = [f'data.train=[{{path="{ids}"}}]', "data.dev=none", "--allow-change"]
    assert run(*words, *other) == 3
    assert "its tokenizer differs from" in errors_of(capsys)
    assert run(*words) == 0


def test_restarted_run_rejects_an_older_average(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "run"
    words = ["train", workshop.config, "--output", output, "training.max_steps=10"]
    assert run(*words) == 0
    assert run("average", output, "--last", "2") == 0
    shutil.rmtree(output / "checkpoints")
    assert run(*words, "schedule.factor=0.5") == 4
    assert f"{output / 'average-2'}: belongs to an earlier training" in errors_of(capsys)
    shutil.rmtree(output / "average-2")
    assert run(*words, "schedule.factor=0.5") == 0


def test_best_checkpoint_is_the_best_on_the_current_dev_set(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The best value on another set is not compared and not kept."""
    output, harder = tmp_path / "run", tmp_path / "harder"
    texts = ["--source", workshop.directory / "dev.de", "--target", workshop.directory / "dev.en"]
    prepare = ["data", "prepare", *texts, "--tokenizer", workshop.tokenizer]
    assert run(*prepare, "--output", harder) == 0
    words = ["train", workshop.config, "--output", output]
    assert run(*words, "training.max_steps=20") == 0
    assert model_of(output) == output / "checkpoints/step-00000020"
    changed = [f'data.dev="{harder}"', "--allow-change"]
    assert run(*words, "training.max_steps=22", *changed) == 0
    assert "the development set has changed" in errors_of(capsys)
    assert model_of(output) == output / "checkpoints/step-00000022"
    assert run(*words, "training.max_steps=24", "data.dev=none", "--allow-change") == 0
    assert model_of(output) == output / "checkpoints/step-00000024"
