"""`transept evaluate --model`: a test set decoded and scored, settings tried, mistakes said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.workshop import Workshop, run

import transept
from transept import shelf

Capture = pytest.CaptureFixture[str]
Evaluate = Callable[..., int]


@pytest.fixture
def evaluate(trained: Path, workshop: Workshop) -> Evaluate:
    """Runs the command with the model and its development set."""
    directory = workshop.directory
    files = ["--source", directory / "dev.en", "--reference", directory / "dev.de"]
    return lambda *words: run("evaluate", "--model", trained, *files, *words)


def test_a_model_is_decoded_and_scored(
    evaluate: Evaluate, trained: Path, workshop: Workshop, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "hyp.de"
    output.write_text("what was there before")
    assert evaluate("--output", output, "--json", "--beam-size", 2) == 0
    decoded = json.loads(capsys.readouterr().out)
    assert decoded["model"] == str(trained / "average-3")
    assert decoded["search"]["beam_size"] == 2
    assert decoded["sentences"] == 60
    assert [one["convention"]["name"] for one in decoded["perplexities"]] == [
        "perplexity per token",
        "perplexity per word",
    ]
    sources = (workshop.directory / "dev.en").read_text().splitlines()
    hypotheses = output.read_text().splitlines()
    model = transept.load(trained)
    assert hypotheses == [one.text for one in model.translate(sources, beam_size=2, split=False)]
    assert [path.name for path in tmp_path.iterdir()] == ["hyp.de"]
    reference = workshop.directory / "dev.de"
    assert run("evaluate", "--hypothesis", output, "--reference", reference, "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert decoded["systems"][0]["scores"] == scored["systems"][0]["scores"]


def test_the_report_says_how_it_was_decoded(
    evaluate: Evaluate, trained: Path, workshop: Workshop, capsys: Capture
) -> None:
    assert evaluate("--other", workshop.directory / "dev.en") == 0
    out, said = capsys.readouterr()
    rows = out.splitlines()
    assert rows[1] == f"model        {trained / 'average-3'}"
    assert rows[2].startswith("source ")
    assert rows[3] == (
        "search       beam size 4, length penalty 0.6, at most 1 × source + 50 tokens"
    )
    for name in ("sacreBLEU", "chrF2", "perplexity per token", "perplexity per word"):
        (number, *_) = (n for n, row in enumerate(rows) if row.startswith(name))
        assert "|version:" in rows[number + 1]
    assert "model − other" in out
    assert "wins are the model's" in out
    assert "few: intervals" in said


def test_a_grid_shows_the_best(evaluate: Evaluate, capsys: Capture) -> None:
    grid = ["--grid", "beam_size=1,2", "length_penalty=0,1"]
    assert evaluate(*grid, "--json") == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    settings = [trial["settings"] for trial in report["trials"]]
    assert settings == [{"beam_size": w, "length_penalty": a} for w in (1, 2) for a in (0.0, 1.0)]
    scores = [trial["score"]["value"] for trial in report["trials"]]
    assert report["best"] == settings[scores.index(max(scores))]
    assert all(trial["score"]["convention"]["signature"] for trial in report["trials"])
    # What is not tried may be given.
    assert evaluate("--grid", "beam_size=1", "--length-penalty", "1", "--json") == 0
    (trial,) = json.loads(capsys.readouterr().out)["trials"]
    assert trial["score"]["value"] == scores[1]
    assert evaluate("--grid", "beam_size=1,2 length_penalty=0,1") == 0
    rows = capsys.readouterr().out.splitlines()
    assert sum(row.startswith("* ") for row in rows) == 1
    assert any(row.startswith("  nrefs:1|case:mixed") for row in rows)
    assert any(row.startswith("Best: --beam-size") for row in rows)


@pytest.mark.parametrize("again", [[], ["--grid"]])
def test_a_setting_that_a_grid_names_again_is_tried_with_all_its_values(
    evaluate: Evaluate, capsys: Capture, again: list[str]
) -> None:
    assert evaluate("--grid", "beam_size=1", *again, "beam-size=2,3", "--json") == 0
    trials = json.loads(capsys.readouterr().out)["trials"]
    assert [trial["settings"] for trial in trials] == [{"beam_size": n} for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--grid", "beam=1,2"], 2, "'beam' is unknown; did you mean 'beam_size'?"),
        (["--n-best", "2"], 2, "Unknown option: --n-best.\nSee"),
        (["--grid", "beam_size=1,x"], 2, "is no list of numbers like 'beam_size=1,4,8'"),
        (["--grid", "beam_size=0"], 2, "--grid: beam_size: 0 must be at least 1"),
        (["--grid", "beam_size=2", "--output", "x"], 2, "--grid and --output do not go together"),
        (
            ["--grid", "beam_size=1,2", "--beam-size", "8"],
            2,
            "--grid beam_size and --beam-size do not go together; leave one out",
        ),
        (
            ["--length-penalty", "0", "--grid", "length_penalty=0,1", "beam_size=1"],
            2,
            "--grid length_penalty and --length-penalty do not go together; leave one out",
        ),
        (["--perplexity", "--other", "x"], 2, "--perplexity and --other do not go together"),
        (["--perplexity", "--beam-size", "4"], 2, "--perplexity and --beam-size do not go"),
        (
            ["--grid", "beam_size=1,2", "--beam-size", "4"],
            2,
            "--grid beam_size and --beam-size do not go together; leave one out",
        ),
        (["--perplexity", "--beam-size", "2"], 2, "--perplexity and --beam-size do not go"),
        (["--perplexity", "--engine", "ctranslate2"], 2, "--perplexity and --engine ctranslate2"),
        (["--grid", "beam_size=2", "--target-language", "de"], 2, "--grid and --target-language"),
        (["--hypothesis", "x"], 2, "--hypothesis and --source do not go together"),
        (["--output", "absent/hyp.de"], 3, "absent: is no directory"),
        (["--max-source-length", "8"], 3, "--too-long split cuts it"),
        (["--beam-size", "0"], 2, "--beam-size: 0 must be"),
    ],
)
def test_what_cannot_be_done_is_said(
    evaluate: Evaluate, capsys: Capture, words: list[str], code: int, complaint: str
) -> None:
    assert evaluate(*words) == code
    out, said = capsys.readouterr()
    assert complaint in said
    assert out == ""


def test_something_must_be_scored(
    workshop: Workshop, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "SHELF", workshop.directory / "nothing")
    reference = workshop.directory / "dev.de"
    assert run("evaluate", "--reference", reference) == 2
    assert "nothing to score: give --hypothesis" in capsys.readouterr().err
    source = workshop.directory / "dev.en"
    assert run("evaluate", "--reference", reference, "--source", source) == 2
    assert "no model was named" in capsys.readouterr().err
