"""`transept demo` from the first line to the last."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.workshop import ran, run, write_pairs

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.pipeline import averaged_steps
from transept.apps.recipes.recipe import Recipe
from transept.apps.serve.models import open_model
from transept.experiment import Experiment

STAGES = ["text", "vocabulary", "ids", "training", "average", "translation"]
QUICK = ["--pairs", "400", "--steps", "10"]
MODEL = "average-20"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A demo's directory, and what it printed."""
    output = tmp_path_factory.mktemp("demo") / "first demo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["__main__.py"])  # as of `python -m transept`
        result = ran("demo", "--output", output, *QUICK)
    assert result.returncode == 0, result.stderr
    return output, result.stdout


def read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def bleu(output: Path) -> float:
    stages = read_json(output / "record.json")["stages"]
    value: float = stages["score"]["results"]["tests"]["test"]["systems"][0]["scores"][0]["value"]
    return value


def exact_match(output: Path) -> float:
    ours, references = (
        (output / name / "test.de").read_text().splitlines() for name in ("hypotheses", "tests")
    )
    return sum(map(str.__eq__, ours, references)) / len(references)


def stage_lines(shown: str) -> dict[str, str]:
    found = re.findall(r"^\d (\w+) +(.*)$", shown, flags=re.MULTILINE)
    assert [name for name, _ in found] == STAGES
    return dict(found)


def test_listed_output_files_exist(finished: tuple[Path, str]) -> None:
    output, shown = finished
    for name in ("text/train.en", "text/test.de", "vocabulary", "run/metrics.jsonl"):
        assert (output / name).exists()
    listed = shown.partition("Output files\n")[2].partition("\n\n")[0].splitlines()
    for line in listed:
        assert Path(re.split(r"  +", line.strip())[0]).exists()
    assert len(listed) == 6
    for name in ("hypotheses/test.de", "text/test.de"):
        assert (output / name).read_text().count("\n") == 20


def test_average_of_a_short_training_skips_its_first_half(
    finished: tuple[Path, str],
) -> None:
    average = finished[0] / "run" / MODEL
    assert averaged_steps(average) == [6, 7, 8, 9, 10]


def test_results_of_fewer_steps_are_marked_as_incomplete(finished: tuple[Path, str]) -> None:
    _, shown = finished
    assert stage_lines(shown)["training"].startswith("10 of 2,320 steps")
    assert "Incomplete: this model was trained for only 10 of 2,320 steps." in shown
    assert "Scores on the 20 test sentences, after 10 of 2,320 steps" in shown


def test_scores_are_printed_with_their_signature(finished: tuple[Path, str]) -> None:
    output, shown = finished
    assert re.search(r"sacreBLEU \d+\.\d\d  nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth", shown)
    assert f"sacreBLEU {bleu(output):.2f}  " in shown
    assert f"exact match {100 * exact_match(output):.1f} %" in shown


def test_a_pipe_gets_plain_text(finished: tuple[Path, str]) -> None:
    _, shown = finished
    stage_lines(shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert not re.search(r" +$", shown, flags=re.MULTILINE)
    assert "Where do you live?" in shown


def test_suggested_commands_run(finished: tuple[Path, str], tmp_path: Path) -> None:
    output, shown = finished
    lines = shown.partition("Try next\n")[2].partition("\n\n")[0].splitlines()
    commands = [shlex.split(line) for line in lines]
    suggested = {words[3]: words[3:] for words in commands}
    assert [*suggested] == ["translate", "serve", "evaluate", "info", "train"]
    for name in ("translate", "evaluate", "info"):
        assert run(*suggested[name]) == 0
    assert suggested["serve"][1:] == ["--model", str(output / "run"), "--run", str(output / "run")]
    (served,) = open_model(suggested["serve"][2], None, None, "cpu")
    assert str(served) == "en-de"
    *train, place = suggested["train"]
    assert place == f"{output}-deeper"
    assert run(*train, tmp_path / "deeper", "training.max_steps=1") == 0


def test_run_config_describes_the_training(finished: tuple[Path, str]) -> None:
    experiment = config.load(Experiment, finished[0] / "run" / "config.toml")
    assert experiment.training.max_steps == 10
    assert experiment.model.d_model == 128


def test_demo_is_the_bundled_recipe(finished: tuple[Path, str]) -> None:
    begun = config.load(Recipe, finished[0] / "recipe.toml")
    assert config.differences(begun, recipe.load("demo")) == ["sentences.pairs: 400 -> 80000"]


def test_completed_stages_are_skipped(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    output, shown = finished
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()}
    assert run("demo", "--output", output, *QUICK) == 0
    again = capsys.readouterr().out
    assert all(line.endswith("done before") for line in stage_lines(again).values())
    assert (
        again.partition("Held-out")[2].partition("Try next")[0]
        == (shown.partition("Held-out")[2].partition("Try next")[0])
    )
    after = {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.slow
def test_demo_with_more_steps_resumes_the_training(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    output, _ = finished
    assert run("demo", "--output", output, "--pairs", "400", "--steps", "12") == 0
    done = stage_lines(capsys.readouterr().out)
    repeated = [name for name, line in done.items() if line.endswith("done before")]
    assert repeated == ["text", "vocabulary", "ids"]
    assert newest_step(output) == 12


def newest_step(output: Path) -> int:
    newest = max((output / "run" / "checkpoints").iterdir())
    step: int = read_json(newest / "state.json")["step"]
    return step


def test_different_demo_requires_another_directory(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("demo", "--output", finished[0], *QUICK, "--seed", "2") == 2
    assert "seed: 1 -> 2\nChoose another --output" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_demo_presents_nothing_and_resumes(tmp_path: Path, number: signal.Signals) -> None:
    output = tmp_path / "stopped"
    words = ["demo", "--output", str(output), "--pairs", "400"]
    process = subprocess.Popen(
        [sys.executable, "-m", "transept", *words], stdout=subprocess.PIPE, text=True
    )
    log = output / "run" / "metrics.jsonl"
    while process.poll() is None and not (log.exists() and '"kind": "step"' in log.read_text()):
        time.sleep(0.05)
    process.send_signal(number)
    shown, _ = process.communicate()
    assert process.returncode == 75
    assert "Stopped. Progress is saved; run the same command to resume" in shown
    assert "4 training" not in shown
    assert not (output / "record.json").exists()
    assert not (output / "run" / MODEL).exists()
    step = newest_step(output)
    assert run(*words, "--steps", step + 2) == 0
    assert newest_step(output) == step + 2


@pytest.mark.slow
def test_demo_trains_on_custom_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    write_pairs(tmp_path / "mine" / "train", 600, seed=1)
    write_pairs(tmp_path / "mine" / "test", 10, seed=2)
    words = ["demo", "--data", tmp_path / "mine", "--output", tmp_path / "demo"]
    assert run(*words, "--steps", "4", "--source-language", "de") == 0
    shown = capsys.readouterr().out
    assert "de → en" in shown
    # The path is long, and the line is broken somewhere.
    assert "; dev held out from train" in " ".join(shown.split())
    assert (tmp_path / "demo" / "hypotheses" / "test.en").read_text().count("\n") == 10
    experiment = config.load(Experiment, tmp_path / "demo" / "run" / "config.toml")
    assert experiment.model.dropout == 0.1
    assert experiment.model.vocab_size <= 2000


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--steps", "0"], 2, "--steps must be at least 1"),
        (["--pairs", "5"], 2, "pairs: 5 must be at least 100"),
        (["--source-language", "fr"], 2, "require --data"),
        (["--data", "absent"], 3, "absent: is not a folder"),
    ],
)
def test_invalid_options_are_rejected(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    complaint: str,
) -> None:
    assert run("demo", "--output", tmp_path / "demo", *words) == code
    assert complaint in capsys.readouterr().err
