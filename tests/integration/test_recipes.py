"""A recipe from text to a report: stopped, moved and resumed."""

import gzip
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.integration import workshop
from tests.integration.kitchen import Kitchen
from tests.integration.workshop import run
from tests.unit.data.fetching.test_fetch import tar, without_published_checksums

from transept import config
from transept.api.models import languages_of
from transept.apps.recipes import recipe
from transept.checkpoint import CHECKPOINTS, WEIGHTS
from transept.data.fetching.datasets import DATASETS, DatasetName
from transept.data.fetching.fetch import fetch
from transept.data.shards import Manifest
from transept.experiment import Experiment
from transept.text.spans import MASKS
from transept.text.tokenizer import Tokenizer
from transept.text.variation import Variation

STAGES = ["prepare", "train", "average", "decode", "score", "package", "report"]


def lines_of(shown: str) -> dict[str, str]:
    return dict(re.findall(rf"^({'|'.join(STAGES)}) +(.*)$", shown, re.M))


def record_of(work: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((work / "record.json").read_bytes())
    return record


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
    assert run("translate", "--model", work / "model", "one two") == 0
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


def test_time_limit_sets_the_checkpoint_interval() -> None:
    base = recipe.load("europarl-en-de-base").within(72.0).experiment.checkpoint
    assert (base.every_minutes, base.after_minutes, base.keep) == (1.0, 68.0, 5)


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


# --- the recipes that come with transept -----------------------------------------------------


def test_recipe_show_prints_a_recipe_or_the_names_of_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("recipe", "show") == 0
    listed = capsys.readouterr().out
    assert [line.split()[0] for line in listed.splitlines()] == recipe.names()
    assert run("recipe", "show", "wmt14-en-de-base", "average.last=7") == 0
    shown = capsys.readouterr().out
    assert "last = 7" in shown
    assert run("recipe", "show", "wmt14-en-de-bsae") == 2
    assert "did you mean 'wmt14-en-de-base'?" in capsys.readouterr().err


def test_dry_run_of_a_new_work_directory_lists_all_stages_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "new"
    assert run("recipe", "run", "wmt14-en-de-base", "--dry-run", "--work", work) == 0
    assert lines_of(capsys.readouterr().out) == dict.fromkeys(STAGES, "to do")
    assert not work.exists()


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


TINY = ["experiment.model.vocab_size=300", "experiment.model.n_layers=1",
        "experiment.model.d_model=16", "experiment.model.d_ff=32", "experiment.model.n_heads=2",
        "experiment.batch.source_tokens=512", "experiment.batch.target_tokens=512",
        "experiment.training.max_steps=4", "experiment.checkpoint.every_steps=1",
        "experiment.data.workers=0", "average.last=2"]  # fmt: skip


def numbers(language: str, n: int, seed: int) -> str:
    names = {"en": workshop.ENGLISH}.get(language, workshop.GERMAN)
    chance = random.Random(seed)
    drawn = [[chance.randrange(10) for _ in range(chance.randint(2, 7))] for _ in range(n)]
    return "".join(" ".join(names[i] for i in line) + "\n" for line in drawn)


def stand_ins(other: str) -> dict[str, bytes]:
    """Archives of the layout of WMT 2014's, of number words."""

    def plain(stem: str, n: int) -> dict[str, str | bytes]:
        return {f"{stem}.{side}": numbers(side, n, n) for side in ("en", other)}

    def test_set(role: str, side: str) -> str:
        lines = numbers(side, 5, 5).splitlines()
        marked = "".join(f'<seg id="{i}"> {line} </seg>\n' for i, line in enumerate(lines))
        return f'<srcset setid="newstest2014"><doc docid="1">\n{marked}</doc></srcset>\n'

    giga: dict[str, str | bytes] = {
        f"giga-fren.release2.fixed.{side}.gz": gzip.compress(numbers(side, 60, 60).encode())
        for side in ("en", other)
    }
    tests: dict[str, str | bytes] = {
        f"test-full/newstest2014-{other}en-{role}.{side}.sgm": test_set(role, side)
        for role, side in (("src", "en"), ("ref", other))
    }
    return {
        "training-parallel-europarl-v7.tgz": tar(plain(f"training/europarl-v7.{other}-en", 200)),
        "training-parallel-commoncrawl.tgz": tar(plain(f"commoncrawl.{other}-en", 80)),
        "training-parallel-nc-v9.tgz": tar(plain(f"training/news-commentary-v9.{other}-en", 90)),
        "training-parallel-un.tgz": tar(plain(f"un/undoc.2000.{other}-en", 50)),
        "training-giga-fren.tar": tar(giga, "w"),
        "dev.tgz": tar(plain("dev/newstest2013", 12)),
        "test-full.tgz": tar(tests),
    }


@pytest.mark.parametrize(
    "name", ["wmt14-en-de-base", pytest.param("wmt14-en-fr-big", marks=pytest.mark.slow)]
)
def test_the_papers_recipes_run_from_archives_to_a_record(name: str, tmp_path: Path) -> None:
    data, work = tmp_path / "wmt", tmp_path / "work"
    dataset: DatasetName = "wmt14-en-fr" if "fr" in name else "wmt14-en-de"
    (data / "downloads").mkdir(parents=True)
    for file, content in stand_ins(dataset[-2:]).items():
        (data / "downloads" / file).write_bytes(content)
    # Published checksums are those of the real archives, which these replace.
    fetch(without_published_checksums(DATASETS[dataset]), data)
    command = ["recipe", "run", name, *TINY, "--data", data, "--work", work]
    assert run(*command, "vocabulary.max_lines=400") == 0
    stages = record_of(work)["stages"]
    assert stages["prepare"]["results"]["corpora"]["train"]["read"] >= 370
    assert set(stages["score"]["results"]["tests"]) == {"newstest2014", "newstest2013"}
    assert stages["average"]["inputs"]["steps"] == [3, 4]


def test_archives_with_wrong_checksums_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "downloads").mkdir()
    for file, content in stand_ins("de").items():
        (tmp_path / "downloads" / file).write_bytes(content)
    words = ["recipe", "run", "wmt14-en-de-base", "--data", tmp_path, "--work", tmp_path / "w"]
    assert run(*words) == 3
    assert "is not the expected file" in capsys.readouterr().err
