"""`transept score`: each pair, and their perplexity."""

import json
import math
from pathlib import Path

import pytest
from tests.integration.workshop import Workshop, run

import transept

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def pairs(workshop: Workshop) -> tuple[Path, Path]:
    return workshop.directory / "dev.en", workshop.directory / "dev.de"


def test_score_prints_a_line_per_pair(
    trained: Path, pairs: tuple[Path, Path], capsys: Capture
) -> None:
    source, target = pairs
    words = ["score", "--model", trained, "--source", source, "--target", target]
    assert run(*words) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    expected = transept.load(trained).score(
        source.read_text().splitlines(), target.read_text().splitlines()
    )
    assert [float(row[0]) for row in rows] == pytest.approx(
        [pair.log_probability for pair in expected], abs=1e-5
    )
    assert [int(row[1]) for row in rows] == [len(pair.tokens) for pair in expected]
    assert run(*words, "--json") == 0
    described = json.loads(capsys.readouterr().out.splitlines()[0])
    assert described["target"] == expected[0].target
    assert described["log_probability"] == pytest.approx(expected[0].log_probability)
    assert tuple(described["tokens"]) == expected[0].tokens
    each = described["token_log_probabilities"]
    assert sum(each) == pytest.approx(float(rows[0][0]), abs=1e-4)


def test_segmentation_is_an_option_except_for_the_perplexity(
    trained: Path, pairs: tuple[Path, Path], capsys: Capture
) -> None:
    source, target = pairs
    words = ["score", "--model", trained, "--source", source, "--target", target]
    found = {}
    for segmentation in ("likeliest", "canonical"):
        assert run(*words, "--segmentation", segmentation) == 0
        rows = capsys.readouterr().out.splitlines()
        found[segmentation] = [float(row.split("\t")[0]) for row in rows]
    both = zip(found["likeliest"], found["canonical"], strict=True)
    assert all(likeliest >= canonical for likeliest, canonical in both)
    assert run(*words, "--segmentation", "likeliest", "--perplexity") == 2
    assert "--perplexity needs --segmentation canonical" in capsys.readouterr().err


def test_different_numbers_of_lines_are_refused(
    trained: Path, pairs: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    short = tmp_path / "short.de"
    short.write_text("eins\n")
    words = ["score", "--model", trained, "--source", pairs[0], "--target", short]
    assert run(*words) == 3
    out, said = capsys.readouterr()
    assert out == ""
    assert "dev.en has 60" in said


def test_the_perplexity_is_the_one_that_training_saw(
    trained: Path, pairs: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    # `data prepare` dropped pairs that came twice.
    unique = dict.fromkeys(zip(*(path.read_text().splitlines() for path in pairs), strict=True))
    source, reference = tmp_path / "dev.en", tmp_path / "dev.de"
    for path, lines in zip((source, reference), zip(*unique, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    model = trained / "checkpoints/step-00000400"
    words = ["score", "--model", model, "--source", source, "--target", reference]
    assert run(*words, "--perplexity", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    per_token, per_word = report["perplexities"]
    logged = (trained / "metrics.jsonl").read_text().splitlines()
    validations = [line for line in map(json.loads, logged) if line["kind"] == "validation"]
    assert per_token["value"] == pytest.approx(validations[-1]["perplexity"], rel=1e-4)
    n_words = len(reference.read_text().split()) + len(unique)
    assert per_word["units"] == n_words
    total = per_token["units"] * math.log(per_token["value"])
    assert per_word["value"] == pytest.approx(math.exp(total / n_words))
    for one in (per_token, per_word):
        assert "smooth:none" in one["convention"]["signature"]
    assert run(*words, "--perplexity") == 0
    shown = capsys.readouterr().out.splitlines()
    (row,) = (row for row in shown if row.startswith("perplexity per token"))
    assert row.split()[3] == f"{per_token['value']:.2f}"
    assert shown[shown.index(row) + 1].strip() == per_token["convention"]["signature"]
