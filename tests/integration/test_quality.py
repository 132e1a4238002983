"""BLEU and chrF during training, sample translations, and the best step by these metrics."""

import gc
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.integration.workshop import Workshop, run

import transept
from transept import config
from transept.assembly import build_update
from transept.assembly.quality import DevelopmentSentences
from transept.checkpoint import Checkpoints
from transept.data.shards import Corpus
from transept.evaluation.conventions import chrf, sacre_bleu
from transept.experiment import Experiment
from transept.model.transformer import Transformer
from transept.runtime.device import Runtime
from transept.training.observers import read_metrics

OPTIONS = ("training.max_steps=12", "training.ema_decay=0.5", "validation.every_steps=4")


def lines_of(output: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind in a run's log, without times."""
    timed = ("seconds", "tokens_per_second", "mfu")
    return [
        {key: value for key, value in line.items() if key not in timed}
        for line in read_metrics(output / "metrics.jsonl")
        if line["kind"] == kind
    ]


def final_tensors(output: Path) -> dict[str, torch.Tensor]:
    newest = Checkpoints(output / "checkpoints").newest()
    assert newest is not None
    return newest.weights() | newest.training()


@pytest.fixture(scope="module")
def checked(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the development set at steps 3, 6, 9 and 12."""
    output = tmp_path_factory.mktemp("checked") / "run"
    bleu = ("validation.bleu_every_steps=3", "validation.samples=2")
    assert run("train", workshop.config, *OPTIONS, *bleu, "--output", output) == 0
    return output


def test_quality_checks_do_not_change_the_training(
    workshop: Workshop, checked: Path, tmp_path: Path
) -> None:
    assert run("train", workshop.config, *OPTIONS, "--output", tmp_path / "plain") == 0
    for kind in ("step", "validation"):
        assert lines_of(checked, kind) == lines_of(tmp_path / "plain", kind)
    ours, theirs = final_tensors(checked), final_tensors(tmp_path / "plain")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_scores_and_samples_are_those_of_the_checkpoint(workshop: Workshop, checked: Path) -> None:
    found = lines_of(checked, "quality")
    assert [line["step"] for line in found] == [3, 6, 9, 12]
    sources, references = (
        (workshop.directory / f"dev.{side}").read_text().splitlines() for side in ("en", "de")
    )
    # The corpus has each pair once.
    pairs = dict.fromkeys(zip(sources, references, strict=True))
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    model = transept.load(checked / "checkpoints/step-00000012", device="cpu")
    translated = model.translate(sources, beam_size=1, split=False, raw=True)
    outputs = [one.text for one in translated]
    last = found[-1]
    assert last["sentences"] == len(outputs)
    assert last["bleu"] == sacre_bleu().measure(outputs, references).value
    assert last["chrf"] == chrf(outputs, references).value
    at = [0, len(outputs) // 2]
    assert last["samples"] == [
        {"source": sources[i], "reference": references[i], "output": outputs[i]} for i in at
    ]


def test_check_frees_its_copy_of_the_network_and_leaves_the_mode(workshop: Workshop) -> None:
    experiment = config.load(Experiment, workshop.config)
    update = build_update(experiment, Runtime.choose("cpu"))
    update.model.train()
    settings = config.load(
        Experiment,
        workshop.config,
        ["validation.bleu_every_steps=1", "validation.bleu_sentences=5"],
    ).validation
    sentences = DevelopmentSentences.of(Corpus.open(workshop.directory / "dev-ids"), settings)
    assert sentences is not None
    before, state = networks(), torch.get_rng_state()
    gc.disable()
    try:
        assert sentences.measure(update).sentences == 5
        assert networks() == before
    finally:
        gc.enable()
    assert update.model.training
    assert torch.equal(torch.get_rng_state(), state)


def networks() -> int:
    return sum(type(each) is Transformer for each in gc.get_objects())


def test_best_checkpoint_and_early_stopping_follow_the_metric(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "training.max_steps=100", "validation.every_steps=7",
             "validation.bleu_every_steps=3", "validation.metric=chrf", "validation.patience=2",
             "schedule.factor=30.0", "checkpoint.keep=1"]  # fmt: skip
    assert run(*words, "--output", tmp_path / "run") == 0
    found = lines_of(tmp_path / "run", "quality")
    assert lines_of(tmp_path / "run", "end")[-1]["outcome"] == "no longer improving"
    best = max(found, key=lambda line: line["chrf"])
    assert [line["step"] for line in found][-3:] == [best["step"] + 3 * i for i in range(3)]
    assert not any(line["best"] for line in lines_of(tmp_path / "run", "validation"))
    kept = Checkpoints(tmp_path / "run/checkpoints").steps()
    assert kept == sorted({best["step"], found[-1]["step"]})
    capsys.readouterr()
    assert run("info", tmp_path / "run", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    assert about["best"] == {"step": best["step"], "chrf": best["chrf"]}
    assert about["last quality"]["bleu"] == found[-1]["bleu"]
    assert about["used by --model"].endswith(f"step-{best['step']:08}")


@pytest.mark.slow
def test_interrupted_run_finds_the_same_best_step(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", workshop.config, "training.max_steps=4", "validation.bleu_every_steps=2",
             "validation.metric=bleu"]  # fmt: skip
    assert run(*words, "--output", tmp_path / "straight") == 0
    for _ in range(2):
        assert run(*words, "--output", tmp_path / "stopped", "--minutes", "1e-9") == 75
    assert run(*words, "--output", tmp_path / "stopped") == 0
    assert lines_of(tmp_path / "stopped", "quality") == lines_of(tmp_path / "straight", "quality")
    states = []
    for name in ("straight", "stopped"):
        newest = Checkpoints(tmp_path / name / "checkpoints").newest()
        assert newest is not None
        keys = ("metric", "best", "best_step", "stale_validations")
        states.append({key: newest.state()[key] for key in keys})
    assert states[0] == states[1]
    assert states[0]["metric"] == "bleu"


@pytest.mark.slow
def test_changed_metric_is_reported_and_restarts_the_search(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "--output", tmp_path / "run", "training.max_steps=10"]
    assert run(*words) == 0
    words[-1] = "training.max_steps=11"
    bleu = ["validation.bleu_every_steps=11", "validation.metric=bleu"]
    assert run(*words, *bleu) == 2
    assert "validation.metric: nll -> bleu" in " ".join(capsys.readouterr().err.split())
    assert run(*words, *bleu, "--allow-change") == 0
    errors = " ".join(capsys.readouterr().err.split())
    assert (
        "the metric of the best step changed from nll to bleu of 500 sentences with beam size 1; "
        "the search for the best step restarts" in errors
    )
    assert lines_of(tmp_path / "run", "quality")[-1]["best"]
    # The metric stays the same, but its values are not comparable.
    words[-1] = "training.max_steps=12"
    assert run(*words, *bleu, "validation.bleu_sentences=20", "--allow-change") == 0
    assert "to bleu of 20 sentences" in " ".join(capsys.readouterr().err.split())


def test_console_shows_scores_and_samples(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bleu = ["validation.bleu_every_steps=2", "validation.bleu_sentences=7", "validation.samples=1"]
    words = ["train", workshop.config, "training.max_steps=2", *bleu]
    assert run(*words, "--output", tmp_path / "run") == 0
    errors = capsys.readouterr().err
    pattern = (
        r"^step 2: BLEU \d+\.\d\d, chrF \d+\.\d\d on 7 sentences in \d+\.\d s\n"
        r"  source     \w.*\n  reference  \w.*\n  output     "
    )
    assert re.search(pattern, errors, re.MULTILINE), errors


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        (("validation.metric=bleu",), "metric: 'bleu' is never computed; set bleu_every_steps"),
        (("validation.bleu_every_steps=0",), "bleu_every_steps: 0 must be at least 1"),
        (("validation.samples=-1",), "validation.samples: -1 must be at least 0"),
        (
            ("validation.bleu_every_steps=5", "data.dev=none"),
            "validation.bleu_every_steps: needs a development set; set data.dev, or omit it",
        ),
    ],
)
def test_impossible_quality_check_is_rejected_before_the_run(
    workshop: Workshop,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    overrides: tuple[str, ...],
    complaint: str,
) -> None:
    assert run("train", workshop.config, *overrides, "--output", tmp_path / "run") == 2
    assert complaint in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()
