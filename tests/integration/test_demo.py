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
from tests.integration.workshop import run, write_pairs

from transept import config
from transept.demo.stages import AVERAGED
from transept.experiment import Experiment
from transept.recipes.work import averaged_steps

STAGES = ["text", "vocabulary", "ids", "training", "average", "translation"]
QUICK = ["--pairs", "400", "--minutes", "0.02"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A demo's directory, and what it printed into a pipe."""
    output = tmp_path_factory.mktemp("demo") / "first demo"
    words = [sys.executable, "-m", "transept", "demo", "--output", output, *QUICK]
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return output, result.stdout


def read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def stage_lines(shown: str) -> dict[str, str]:
    found = re.findall(r"^\d (\w+) +(.*)$", shown, flags=re.MULTILINE)
    assert [name for name, _ in found] == STAGES
    return dict(found)


def test_everything_lies_where_it_is_said_to(finished: tuple[Path, str]) -> None:
    output, shown = finished
    for name in ("text/train.en", "text/test.de", "vocabulary", "run/metrics.jsonl", "test.de"):
        assert (output / name).exists()
    listed = shown.partition("Where everything lies\n")[2].partition("\n\n")[0].splitlines()
    for line in listed:
        assert Path(re.split(r"  +", line.strip())[0]).exists()
    assert len(listed) == 6
    lines = [(output / name).read_text().count("\n") for name in ("test.de", "text/test.de")]
    assert lines == [20, 20]


def test_the_mean_is_of_checkpoints_of_the_second_half(finished: tuple[Path, str]) -> None:
    run_directory = finished[0] / "run"
    states = sorted((run_directory / "checkpoints").glob("step-*/state.json"))
    seconds = {state["step"]: state["seconds"] for state in map(read_json, states)}
    late = [step for step, second in seconds.items() if second >= max(seconds.values()) / 2]
    assert averaged_steps(run_directory / f"average-{AVERAGED}") == late


def test_scores_carry_their_signature(finished: tuple[Path, str]) -> None:
    output, shown = finished
    scores = json.loads((output / "scores.json").read_text())
    assert re.search(r"sacreBLEU \d+\.\d\d  nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth", shown)
    assert f"exact match {100 * scores['exact_match']:.1f} %" in shown
    assert scores["sentences"] == 20


def test_a_pipe_gets_plain_text(finished: tuple[Path, str]) -> None:
    _, shown = finished
    stage_lines(shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert not re.search(r" +$", shown, flags=re.MULTILINE)
    assert "Where do you live?" in shown


def test_what_to_try_next_can_be_pasted(finished: tuple[Path, str], tmp_path: Path) -> None:
    output, shown = finished
    lines = shown.partition("Try next\n")[2].partition("\n\n")[0].splitlines()
    commands = [shlex.split(line) for line in lines]
    assert [words[3] for words in commands] == ["translate", "evaluate", "info", "train"]
    for words in commands[:3]:
        assert run(*words[3:]) == 0
    *train, place = commands[3][3:]
    assert place == f"{output}-deeper"
    assert run(*train, tmp_path / "deeper", "training.max_steps=1") == 0


def test_the_run_says_how_it_was_trained(finished: tuple[Path, str]) -> None:
    experiment = config.load(Experiment, finished[0] / "run" / "config.toml")
    assert experiment.training.max_steps == 12
    assert experiment.model.d_model == 128


def test_what_is_done_is_not_done_again(
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


def test_more_minutes_go_on_from_where_it_was(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    output, _ = finished
    trained = json.loads((newest(output) / "state.json").read_text())["step"]
    assert run("demo", "--output", output, "--pairs", "400", "--minutes", "0.06") == 0
    done = stage_lines(capsys.readouterr().out)
    repeated = [name for name, line in done.items() if line.endswith("done before")]
    assert repeated == ["text", "vocabulary", "ids"]
    assert json.loads((newest(output) / "state.json").read_text())["step"] > trained


def newest(output: Path) -> Path:
    return max((output / "run" / "checkpoints").iterdir())


def test_another_demo_needs_another_place(
    finished: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("demo", "--output", finished[0], *QUICK, "--seed", "2") == 2
    assert "seed: 1 -> 2\nChoose another --output" in capsys.readouterr().err


def test_ctrl_c_ends_with_75_and_the_next_call_goes_on(tmp_path: Path) -> None:
    output = tmp_path / "stopped"
    quick = ["--pairs", "400", "--minutes", "0.2"]
    words = [sys.executable, "-m", "transept", "demo", "--output", str(output), *quick]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    log = output / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and '"checkpoint"' in log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "Stopped. Everything so far is kept; the same command goes on" in shown
    assert "4 training" not in shown
    step = json.loads((newest(output) / "state.json").read_text())["step"]
    assert run("demo", "--output", output, *quick) == 0
    assert json.loads((newest(output) / "state.json").read_text())["step"] > step


def test_a_persons_own_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    write_pairs(tmp_path / "mine" / "train", 600, seed=1)
    write_pairs(tmp_path / "mine" / "test", 10, seed=2)
    words = ["demo", "--data", tmp_path / "mine", "--output", tmp_path / "demo"]
    assert run(*words, "--minutes", "0.02", "--source-language", "de") == 0
    shown = capsys.readouterr().out
    assert "de → en" in shown
    # The path is long, and the line is broken somewhere.
    assert "; dev held out from train" in " ".join(shown.split())
    assert (tmp_path / "demo" / "test.en").read_text().count("\n") == 10
    experiment = config.load(Experiment, tmp_path / "demo" / "run" / "config.toml")
    assert experiment.model.dropout == 0.1
    assert experiment.model.vocab_size <= 2000


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--minutes", "0"], 2, "--minutes must be more than 0"),
        (["--pairs", "5"], 2, "pairs: 5 must be at least 100"),
        (["--source-language", "fr"], 2, "belong to --data"),
        (["--data", "absent"], 3, "absent: is no folder"),
    ],
)
def test_what_cannot_be_meant_is_said(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    complaint: str,
) -> None:
    assert run("demo", "--output", tmp_path / "demo", *words) == code
    assert complaint in capsys.readouterr().err


@pytest.mark.slow
def test_the_demo_keeps_its_promise(tmp_path: Path) -> None:
    """BLEU above 90 and more than 80 % exact on combinations that it never saw."""
    # In a process of its own: the tests' has one thread, and the demo's minutes count on two.
    words = [sys.executable, "-m", "transept", "demo", "--output", str(tmp_path / "demo")]
    assert subprocess.run(words, check=False).returncode == 0
    scores = json.loads((tmp_path / "demo" / "scores.json").read_text())
    assert scores["sacreBLEU"] > 90
    assert scores["exact_match"] > 0.8
