"""`transept evaluate --model` and `transept tune`: a test set decoded and scored."""

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
    assert hypotheses == [one.text for one in model.translate(sources, beam_size=2)]
    assert [path.name for path in tmp_path.iterdir()] == ["hyp.de"]
    reference = workshop.directory / "dev.de"
    assert run("evaluate", "--hypothesis", output, "--reference", reference, "--json") == 0
    scored = json.loads(capsys.readouterr().out)
    assert decoded["systems"][0]["scores"] == scored["systems"][0]["scores"]


def test_evaluate_splits_lines_into_sentences_as_translate_does(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    source, reference, output = (tmp_path / name for name in ("a.en", "a.de", "a.out"))
    source.write_text("One two. Three four.\nFive.\n" * 60)
    reference.write_text("Zwei eins. Vier drei.\nFünf.\n" * 60)
    files = ["--source", source, "--reference", reference, "--output", output, "--json"]
    found = {}
    for option in ("--split", "--no-split"):
        assert run("evaluate", "--model", trained, *files, option) == 0
        described = json.loads(capsys.readouterr().out)
        assert described["search"]["split"] == (option == "--split")
        assert run("translate", "--model", trained, "--input", source, option) == 0
        assert output.read_text() == capsys.readouterr().out
        found[option] = output.read_text()
    assert found["--split"] != found["--no-split"]


def test_required_terms_are_in_the_decoded_output(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    source, reference, output = (tmp_path / name for name in ("a.en", "a.de", "out.de"))
    source.write_text("one two\nthree\n")
    reference.write_text("eins zwei\ndrei\n")
    words = ["evaluate", "--model", trained, "--source", source, "--reference", reference]
    assert run(*words, "--output", output, "--keep", "two") == 0
    first, second = output.read_text().splitlines()
    assert "two" in first.split()
    assert "two" not in second.split()
    capsys.readouterr()
    hypothesis = ["evaluate", "--hypothesis", output, "--reference", reference, "--keep", "two"]
    assert run(*hypothesis) == 2
    assert "--hypothesis and term options cannot be combined" in capsys.readouterr().err


def test_report_contains_the_search_settings(
    evaluate: Evaluate, trained: Path, workshop: Workshop, capsys: Capture
) -> None:
    assert evaluate("--other", workshop.directory / "dev.en") == 0
    out, said = capsys.readouterr()
    rows = out.splitlines()
    assert rows[1] == f"model        {trained / 'average-3'}"
    assert rows[2].startswith("source ")
    assert rows[3] == (
        "search       beam size 4, length penalty 0.6, at most 1 × source + 50 tokens, "
        "sentence by sentence"
    )
    for name in ("sacreBLEU", "chrF2", "perplexity per token", "perplexity per word"):
        (number, *_) = (n for n, row in enumerate(rows) if row.startswith(name))
        assert "|version:" in rows[number + 1]
    assert "model − other" in out
    assert "wins are the model's" in out
    assert "few: intervals" in said


def test_sentences_that_are_too_long_are_split_with_one_warning_per_line(
    evaluate: Evaluate, tune: Evaluate, workshop: Workshop, capsys: Capture
) -> None:
    path = workshop.directory / "dev.en"
    for command, words in ((evaluate, ["--beam-size", 1]), (tune, ["--beam-size", 1, 2])):
        assert command("--max-source-length", 8, *words) == 0
        said = [row for row in capsys.readouterr().err.splitlines() if ": split a sentence" in row]
        assert len(said) == len({*said}) > 1
        assert all(row.startswith(f"transept: warning: {path}, line ") for row in said)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--n-best", "2"], 2, "Unknown option: --n-best."),
        (["--hypothesis", "x"], 2, "--hypothesis and --source cannot be combined"),
        (["--output", "absent/hyp.de"], 3, "absent: is not a directory"),
        (["--max-source-length", "8", "--too-long", "refuse"], 3, "--too-long split splits it"),
        (["--beam-size", "0"], 2, "--beam-size: 0 must be"),
        (["--glossary", "absent.tsv"], 3, "absent.tsv: cannot be read"),
    ],
)
def test_invalid_options_are_rejected(
    evaluate: Evaluate, capsys: Capture, words: list[str], code: int, complaint: str
) -> None:
    assert evaluate(*words) == code
    out, said = capsys.readouterr()
    assert complaint in said
    assert out == ""


@pytest.fixture
def tune(trained: Path, workshop: Workshop) -> Evaluate:
    """Runs the command with the model and its development set."""
    directory = workshop.directory
    files = ["--source", directory / "dev.en", "--reference", directory / "dev.de"]
    return lambda *words: run("tune", "--model", trained, *files, *words)


def test_tune_prints_the_grid_and_the_best_settings(tune: Evaluate, capsys: Capture) -> None:
    grid = ["--beam-size", 1, 2, "--length-penalty", 0, 1]
    assert tune(*grid, "--json") == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    settings = [
        {name: trial[name] for name in ("beam_size", "length_penalty")}
        for trial in report["trials"]
    ]
    assert settings == [{"beam_size": w, "length_penalty": a} for w in (1, 2) for a in (0.0, 1.0)]
    scores = [trial["score"]["value"] for trial in report["trials"]]
    assert report["best"] == settings[scores.index(max(scores))]
    assert all(trial["score"]["convention"]["signature"] for trial in report["trials"])
    assert tune(*grid) == 0
    rows = capsys.readouterr().out.splitlines()
    assert sum(row.startswith("* ") for row in rows) == 1
    assert any(row.startswith("  nrefs:1|case:mixed") for row in rows)
    assert rows[-1].startswith("Best: --beam-size")


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--beam-size", "1", "x"], 2, "--beam-size"),
        (["--beam-size", "4", "0"], 2, "--beam-size: 0 must be at least 1"),
        (["--beam-size"], 2, "--beam-size"),
        (["--output", "x"], 2, "Unknown option: --output"),
        (["--max-source-length", "8", "--too-long", "refuse"], 3, "--too-long split splits it"),
    ],
)
def test_tune_names_the_option_that_is_wrong(
    tune: Evaluate, capsys: Capture, words: list[str], code: int, complaint: str
) -> None:
    assert tune(*words) == code
    out, said = capsys.readouterr()
    assert complaint in said
    assert out == ""


def test_evaluate_requires_an_input(
    workshop: Workshop, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "SHELF", workshop.directory / "nothing")
    reference = workshop.directory / "dev.de"
    assert run("evaluate", "--reference", reference) == 2
    assert "nothing to score: give --hypothesis" in capsys.readouterr().err
    source = workshop.directory / "dev.en"
    assert run("evaluate", "--reference", reference, "--source", source) == 2
    assert "no model given" in capsys.readouterr().err
