"""From a trained bundle to text, in Python."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.workshop import Workshop, run

import transept
from transept.errors import CheckpointError

TEXTS = ["one two three", "", "seven", "ten nine eight seven six five", "four four"]


@pytest.fixture(scope="module")
def trained(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("trained") / "run"
    settings = ["training.max_steps=120", "model.d_model=32", "model.d_ff=64", "model.dropout=0.0",
                "training.log_every=20", "validation.every_steps=40",
                "schedule.warmup_steps=40"]  # fmt: skip
    assert run("train", workshop.config, *settings, "--output", output) == 0
    assert run("average", output, "--last", "3") == 0
    return output


def test_a_run_translates_and_an_empty_text_stays_empty(trained: Path) -> None:
    results = transept.load(trained).translate(TEXTS)
    assert [result.source for result in results] == TEXTS
    assert results[1].text == ""
    words = set(" ".join(result.text for result in results).split())
    assert words & {"eins", "zwei", "drei", "sieben", "zehn", "vier"}


@pytest.mark.parametrize("beam_size", [1, 4])
def test_results_do_not_depend_on_batch_order_or_n_best(trained: Path, beam_size: int) -> None:
    model = transept.load(trained)
    together = model.translate(TEXTS, beam_size=beam_size, n_best=beam_size)
    backwards = model.translate(TEXTS[::-1], beam_size=beam_size)[::-1]
    for text, one, other in zip(TEXTS, together, backwards, strict=True):
        (alone,) = model.translate([text], beam_size=beam_size)
        assert alone.text == one.text == other.text
        assert [alone.score, other.score] == pytest.approx([one.score] * 2, abs=1e-4)


def test_n_best_is_sorted_and_distinct(trained: Path) -> None:
    (result,) = transept.load(trained).translate(["one two three"], n_best=4)
    scores = [output.score for output in result.outputs]
    assert len({output.text for output in result.outputs}) == 4
    assert scores == sorted(scores, reverse=True)


def test_an_altered_bundle_is_refused(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is no model directory"):
        transept.load(tmp_path)


def transept_command(*words: object, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "transept", *map(str, words)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_lines_come_out_line_for_line(trained: Path, tmp_path: Path) -> None:
    lines = "one two\n\nthree\n"
    from_pipe = transept_command("translate", "--model", trained, text=lines)
    assert from_pipe.returncode == 0, from_pipe.stderr
    assert from_pipe.stdout.count("\n") == 3
    assert from_pipe.stdout.split("\n")[1] == ""
    (tmp_path / "text").write_text(lines)
    assert run("translate", "--model", trained, "--input", tmp_path / "text") == 0


def test_n_best_scores_and_json(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("translate", "one two", "", "--model", trained, "--n-best", "3") == 0
    rows = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0", "1"]
    assert float(rows[0][2]) >= float(rows[1][2]) >= float(rows[2][2])
    assert run("translate", "one two", "--model", trained, "--scores") == 0
    score, _, text = capsys.readouterr().out.strip().partition("\t")
    assert [text, float(score)] == [rows[0][1], pytest.approx(float(rows[0][2]))]
    assert run("translate", "one two", "--model", trained, "--json") == 0
    assert json.loads(capsys.readouterr().out)["translation"] == text


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["translate", "x"], 2, "--model is missing"),
        (["translate", "x", "--model", "absent"], 4, "is no model directory"),
        (["translate", "x", "--model", "{trained}", "--n-best", "9"], 2, "n_best"),
        (["translate", "--model", "{trained}", "--input", "absent.en"], 3, "absent.en"),
        (["translate", "x", "--model", "{trained}", "--input", "a"], 2, "not both"),
    ],
)
def test_what_cannot_be_translated_is_said(
    trained: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, complaint: str
) -> None:
    assert run(*(word.format(trained=trained) for word in words)) == code
    assert complaint in capsys.readouterr().err
