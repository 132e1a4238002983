"""A recipe from text to a report: stopped, moved and resumed."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.integration.kitchen import STAGES, Kitchen, lines_of, record_of
from tests.integration.workshop import run

from transept import config
from transept.api.models import languages_of
from transept.checkpoint import CHECKPOINTS, WEIGHTS
from transept.data.shards import Manifest
from transept.experiment import Experiment
from transept.text.spans import MASKS
from transept.text.tokenizer import Tokenizer
from transept.text.variation import Variation


def test_record_describes_every_stage(cooked: Path) -> None:
    record = record_of(cooked)
    stages = record["stages"]
    assert list(stages) == STAGES[:-1]
    prepared = stages["prepare"]["results"]
    assert prepared["corpora"]["numbers"]["pairs"] > 500
    assert len(prepared["files"]["train.en.xz"]["sha256"]) == 64
    assert stages["train"]["inputs"]["corpora"]["dev"] == prepared["corpora"]["dev"]["hash"]
    assert stages["train"]["inputs"]["seed"] == 1
    trained = stages["train"]["results"]
    assert (trained["step"], trained["outcome"]) == (60, "finished")
    assert trained["flops_per_target_token"] > 6 * 32 * 300
    assert [point["step"] for point in record["curve"]] == [10, 20, 30, 40, 50, 60]
    assert record["curve"][0]["nll"] > record["curve"][-1]["nll"]
    scores = stages["score"]["results"]["tests"]
    assert scores["first"]["sentences"] == 12
    assert [one["convention"]["name"] for one in scores["first"]["perplexities"]] == [
        "perplexity per token",
        "perplexity per word",
    ]
    assert len(scores["second"]["systems"][0]["scores"]) == 5
    assert all(
        stage["by"]["source"] == stages["train"]["by"]["source"] for stage in stages.values()
    )
    assert (cooked / "hypotheses" / "first.de").read_text().count("\n") == 12


def test_completed_stages_are_skipped_without_the_text(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    assert kitchen.cook(work) == 0
    shown = lines_of(capsys.readouterr().out)
    assert all(shown[name].endswith("done before") for name in STAGES[:-1])
    after = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    assert after == before


def test_stage_reruns_when_its_input_changes(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    (work / "hypotheses" / "first.de").write_text("eins\n" * 12)
    assert kitchen.cook(work) == 0
    shown = lines_of(capsys.readouterr().out)
    assert not shown["score"].endswith("done before")
    assert shown["decode"].endswith("done before")


@pytest.mark.parametrize("stage", STAGES[:-1])
def test_stage_killed_before_its_record_is_recorded_by_the_next_command(
    kitchen: Kitchen,
    cooked: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    stage: str,
) -> None:
    """Its output is complete but not recorded, as after a manual `transept average`."""
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    (work / "records" / f"{stage}.json").unlink()
    (work / "record.json").unlink()
    assert kitchen.cook(work, "--data", kitchen.data) == 0
    assert weights_of(work) == weights_of(cooked)
    again, before = (record_of(each)["stages"][stage] for each in (work, cooked))
    assert again["inputs"] == before["inputs"]
    for key in ("step", "outcome", "weights", "corpora", "tests"):
        assert again["results"].get(key) == before["results"].get(key)


def test_record_of_a_killed_training_is_completed(
    kitchen: Kitchen, cooked: Path, tmp_path: Path
) -> None:
    """An earlier command was stopped at step 40; the next was killed after the last step."""
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    path = work / "records" / "train.json"
    record = json.loads(path.read_bytes())
    record["results"] |= {"step": 40, "outcome": "stopped"}
    path.write_text(json.dumps(record))
    assert kitchen.cook(work) == 0
    trained = record_of(work)["stages"]["train"]["results"]
    assert (trained["step"], trained["outcome"]) == (60, "finished")


def test_subwords_of_the_training_text_are_sampled(kitchen: Kitchen, tmp_path: Path) -> None:
    settings = ["vocabulary.sampling.subword_dropout=0.1", "vocabulary.sampling.copies=2"]
    words = ["--data", kitchen.data, "--only", "prepare", *settings]
    assert kitchen.cook(tmp_path / "work", *words) == 0
    copies = {name: Manifest.load(tmp_path / "work/data" / name).copies for name in ("more", "dev")}
    assert copies == {"more": 2, "dev": 1}


def test_variation_gives_the_vocabulary_masks(kitchen: Kitchen, tmp_path: Path) -> None:
    words = ["--data", kitchen.data, "--only", "prepare", "variation.unstopped=0.5"]
    assert kitchen.cook(tmp_path / "work", *words) == 0
    assert Tokenizer.load(tmp_path / "work" / "vocabulary").masks == MASKS
    more, dev = (Manifest.load(tmp_path / "work/data" / name) for name in ("more", "dev"))
    assert more.settings.variation == Variation(unstopped=0.5)
    assert dev.settings.variation == Variation()
    assert more.settings.languages == ("en", "de")


def test_changed_weights_are_scored_again(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if the translations are equal, because perplexities depend on the weights."""
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    assert run("average", work / "run", "--last", "1", "-o", work / "run/average-3", "--force") == 0
    assert kitchen.cook(work, "--only", "score") == 0
    assert not lines_of(capsys.readouterr().out)["score"].endswith("done before")
    assert kitchen.cook(work, "--only", "score") == 0
    assert lines_of(capsys.readouterr().out)["score"].endswith("done before")


def test_average_has_the_languages_of_the_recipe(cooked: Path) -> None:
    assert languages_of(cooked / "run" / "average-3") == ("en", "de")
    assert languages_of(cooked / "model") == ("en", "de")


def test_damaged_checkpoint_stops_averaging_until_removed(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    (work / "run" / "average-3" / "manifest.json").unlink()
    checkpoint = work / "run" / CHECKPOINTS / "step-00000055"
    (checkpoint / WEIGHTS).write_bytes(b"cut short")
    assert kitchen.cook(work) == 4
    printed = capsys.readouterr()
    assert f"{checkpoint / WEIGHTS}: is damaged" in printed.err
    assert f"remove {checkpoint}" in printed.err
    assert "Stopped" not in printed.out
    shutil.rmtree(checkpoint)
    assert kitchen.cook(work) == 0
    assert record_of(work)["stages"]["average"]["inputs"]["steps"] == [45, 50, 60]


def test_packaged_model_translates_and_is_replaced_if_it_is_lost(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    # After so few steps, some outputs are empty.
    assert run("translate", "--model", work / "model", "one", "two", "three") == 0
    assert capsys.readouterr().out.strip()
    packaged = record_of(work)["stages"]["package"]["results"]
    assert packaged["bytes"] == (work / "model" / WEIGHTS).stat().st_size
    assert len(packaged["scores"]) == 4
    shutil.rmtree(work / "model")
    assert kitchen.cook(work, "--only", "package") == 0
    assert re.search(r"^package +model/ in int8, 0\.\d MB", capsys.readouterr().out, re.M)
    again = record_of(work)["stages"]["package"]["results"]
    assert again["weights"] == packaged["weights"]


def test_recipe_can_leave_out_the_package(
    kitchen: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kitchen.cook(tmp_path / "work", "--dry-run", "package=none") == 0
    assert "package" not in lines_of(capsys.readouterr().out)


def test_missing_test_set_is_reported(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    (work / "tests" / "second.en").unlink()
    assert kitchen.cook(work, "--only", "decode") == 3
    assert "second.en: cannot be read (No such file" in capsys.readouterr().err


def weights_of(work: Path) -> dict[str, bytes]:
    models = [*(work / "run" / CHECKPOINTS).iterdir(), work / "run" / "average-3"]
    return {path.name: (path / WEIGHTS).read_bytes() for path in models}


@pytest.mark.slow
def test_stopped_and_moved_run_ends_with_the_same_bits(
    kitchen: Kitchen, cooked: Path, tmp_path: Path
) -> None:
    """Stopped twice after some steps, then moved, and finished without the text."""
    here, there = tmp_path / "here", tmp_path / "there"
    kitchen.stop(here, 5, "--data", kitchen.data)
    first_stop = steps_of(here)[-1]
    kitchen.stop(here, first_stop + 5)
    second_stop = steps_of(here)[-1]
    assert 0 < first_stop < second_stop < 60
    shutil.move(here, there)
    assert kitchen.cook(there) == 0
    assert (
        weights_of(there).items()
        >= {
            name: weights
            for name, weights in weights_of(cooked).items()
            if name in weights_of(there)
        }.items()
    )
    assert weights_of(there)["average-3"] == weights_of(cooked)["average-3"]
    first, *others = starts_of(there)
    assert first["state"] is None
    assert [line["step"] for line in others] == [first_stop, second_stop]
    assert all(len(line["state"]) == 64 for line in others)
    assert record_of(there)["curve"][-1]["nll"] == record_of(cooked)["curve"][-1]["nll"]


def steps_of(work: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in (work / "run" / CHECKPOINTS).iterdir())


def starts_of(work: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (work / "run" / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if line["kind"] == "start"]


@pytest.mark.slow
def test_time_limit_ends_the_training(
    kitchen: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "short"
    more = "experiment.training.max_steps=100000"
    assert kitchen.cook(work, more, "--data", kitchen.data, "--minutes", "0.02") == 0
    trained = record_of(work)["stages"]["train"]["results"]
    assert trained["outcome"] == "out of time"
    assert trained["seconds"] >= 1.2
    assert 0 < trained["step"] < 100000
    lines = map(json.loads, (work / "run" / "metrics.jsonl").read_text().splitlines())
    written = [line["seconds"] for line in lines if line["kind"] == "checkpoint"]
    assert min(written) >= 1.2 * (1 - 2 / 72)  # three are averaged: no earlier ones are written

    capsys.readouterr()
    assert kitchen.cook(work, more) == 0
    line = lines_of(capsys.readouterr().out)["train"]
    assert line.endswith("the limit of 0.02 minutes; a longer time, or inf, continues  done before")
    assert record_of(work)["minutes"] == 0.02
    assert record_of(work)["stages"]["train"]["results"]["step"] == trained["step"]

    assert kitchen.cook(work, more, "--minutes", "0.01") == 2
    assert "but --minutes 0.01 is less" in capsys.readouterr().err
    assert kitchen.cook(work, more, "--minutes", "0.03") == 0
    assert record_of(work)["minutes"] == 0.03
    longer = record_of(work)["stages"]["train"]["results"]["step"]
    assert longer > trained["step"]
    kitchen.stop(work, longer + 5, more, "--minutes", "inf")
    assert json.loads((work / "records" / "train.json").read_bytes())["inputs"]["minutes"] is None


@pytest.mark.slow
def test_minutes_are_remembered_after_a_kill(kitchen: Kitchen, tmp_path: Path) -> None:
    work = tmp_path / "killed"
    long = ["experiment.training.max_steps=3000", "--until", "train"]
    kitchen.stop(work, 5, *long, "--data", kitchen.data, "--minutes", "0.03")
    (work / "records" / "train.json").unlink()
    assert kitchen.cook(work, *long) == 0
    trained = json.loads((work / "records" / "train.json").read_bytes())
    assert trained["inputs"]["minutes"] == 0.03
    assert trained["results"]["outcome"] == "out of time"


@pytest.mark.slow
def test_extended_run_averages_only_checkpoints_of_its_new_end(
    kitchen: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a machine so slow that no step fits between two checkpoints: each end leaves too few."""
    work = tmp_path / "extended"
    slow = ["experiment.training.max_steps=100000", "average.interval=1e-6", "--until", "average"]
    assert kitchen.cook(work, *slow, "--data", kitchen.data, "--minutes", "0.01") == 0
    first_end = averaged_of(work)
    assert kitchen.cook(work, *slow, "--minutes", "0.02") == 0
    assert set(first_end) <= set(steps_of(work))  # they are there, and not averaged
    assert min(averaged_of(work)) > max(first_end)
    assert "fewer than the recipe averages" in lines_of(capsys.readouterr().out)["average"]


def averaged_of(work: Path) -> list[int]:
    record = json.loads((work / "records" / "average.json").read_bytes())
    steps: list[int] = record["inputs"]["steps"]
    return steps


@pytest.mark.slow
def test_stopped_run_resumes_with_other_means(
    kitchen: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a device with less memory."""
    work, means = (
        tmp_path / "small",
        ["experiment.batch.micro_batches=4", "experiment.data.workers=1"],
    )
    kitchen.stop(work, 5, "--data", kitchen.data)
    assert 0 < steps_of(work)[-1] < 60
    assert kitchen.cook(work, *means) == 0
    assert steps_of(work)[-1] == 60
    assert config.load(Experiment, work / "run" / "config.toml").batch.micro_batches == 4
    assert record_of(work)["recipe"]["experiment"]["batch"]["micro_batches"] == 4
    assert kitchen.cook(work) == 0
    assert kitchen.cook(work, *means, "experiment.model.dropout=0.5") == 2
    refusal = capsys.readouterr().err
    assert "experiment.model.dropout: 0.05 -> 0.5\nChoose" in refusal
    assert "micro_batches" not in refusal


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--work", "W"], 2, "the text is not prepared yet: give --data"),
        (["--work", "W", "--data", "NOWHERE"], 3, "lacks files of this recipe:\n  train.en.xz"),
        (["--work", "W", "--only", "train"], 2, "nothing is prepared yet"),
        (["--work", "W", "--only", "average"], 4, "nothing is trained yet; run `train` first"),
        (["--work", "W", "--only", "decode"], 2, "nothing is averaged yet; run `average` first"),
        (["--work", "W", "--only", "score"], 2, "nothing is translated yet; run `decode` first"),
        (["--work", "W", "--only", "package"], 2, "nothing is trained yet; run `train` first"),
        (
            ["--work", "W", "--only", "report"],
            2,
            "prepare, train, average, decode, score, package:",
        ),
        (["--work", "W", "--only", "translate"], 2, "this recipe has no stage translate; it has"),
        (["--work", "W", "--minutes", "0"], 2, "--minutes must be more than 0"),
        (["--work", "W", "--minutes", "nan"], 2, "--minutes must be more than 0"),
        (["--work", "W", "experiment.model.n_haeds=2"], 2, "did you mean 'n_heads'?"),
    ],
)
def test_invalid_commands_are_rejected(
    kitchen: Kitchen,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    message: str,
) -> None:
    placed = [str(tmp_path / word) if word in ("W", "NOWHERE") else word for word in words]
    assert run("recipe", "run", kitchen.recipe, *placed) == code
    assert message in capsys.readouterr().err


def test_different_recipe_requires_another_directory(
    kitchen: Kitchen, cooked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kitchen.cook(cooked, "experiment.training.seed=2") == 2
    shown = capsys.readouterr().err
    assert "experiment.training.seed: 1 -> 2\nChoose another --work" in shown


def test_corpus_that_differs_from_the_record_is_rejected(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    shutil.rmtree(work / "data" / "dev")
    shutil.copytree(work / "data" / "more", work / "data" / "dev")
    assert kitchen.cook(work) == 3
    assert "is not the corpus in" in capsys.readouterr().err


def test_a_device_that_is_not_there_is_named_by_the_recipes_key(
    kitchen: Kitchen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["experiment.training.device=gpu", "--data", kitchen.data]
    assert kitchen.cook(tmp_path / "work", *words) == 2
    assert "experiment.training.device: 'gpu' cannot be used" in capsys.readouterr().err


def test_dry_run_lists_completed_stages(
    kitchen: Kitchen, cooked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kitchen.cook(cooked, "--dry-run") == 0
    shown = lines_of(capsys.readouterr().out)
    assert [name for name, line in shown.items() if line.endswith("done before")] == STAGES[:-1]
    assert shown["report"] == "to do"
    work = tmp_path / "copy"
    shutil.copytree(cooked, work)
    (work / "hypotheses" / "first.de").unlink()
    assert kitchen.cook(work, "--dry-run") == 0
    shown = lines_of(capsys.readouterr().out)
    assert [name for name, line in shown.items() if line == "to do"] == STAGES[3:]
    assert kitchen.cook(work, "--dry-run", "experiment.training.seed=2") == 2
    assert "experiment.training.seed: 1 -> 2" in capsys.readouterr().err


def test_shortened_text_is_trained_on_and_changes_the_preparation(
    kitchen: Kitchen, tmp_path: Path
) -> None:
    text = 'name="numbers", source="train.en.xz", target="train.de", licence="none"'
    for lines in (50, 40):
        words = [f"texts=[{{{text}, max_lines={lines}}}]", "--data", kitchen.data]
        assert kitchen.cook(tmp_path / f"{lines}", *words, "--only", "prepare") == 0
    records = [
        json.loads((tmp_path / name / "records/prepare.json").read_bytes()) for name in ("50", "40")
    ]
    corpora = [record["results"]["corpora"]["numbers"] for record in records]
    assert [corpus["read"] for corpus in corpora] == [50, 40]
    assert records[0]["inputs"] != records[1]["inputs"]
