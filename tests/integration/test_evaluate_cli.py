"""`transept evaluate`: reports, warnings, messages, exit codes."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.evaluation.systems import damaged, references

from transept.cli.app import main
from transept.evaluation.conventions import tokenised_bleu

REPOSITORY = Path(__file__).parents[2]
REFERENCES = references(120)
OURS, THEIRS = damaged(REFERENCES, 0.1), damaged(REFERENCES, 0.3)


class Run(NamedTuple):
    """The result of a command."""

    code: Any
    output: str
    errors: str


Evaluate = Callable[..., Run]


@pytest.fixture
def evaluate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Evaluate:
    """Runs the command in a directory with ref.de, ours.de and theirs.de."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("ref.de", REFERENCES), ("ours.de", OURS), ("theirs.de", THEIRS)):
        write(name, lines)

    def run(hypothesis: str = "ours.de", reference: str = "ref.de", *words: str) -> Run:
        with pytest.raises(SystemExit) as end:
            main(["evaluate", "--hypothesis", hypothesis, "--reference", reference, *words])
        return Run(end.value.code, *capsys.readouterr())

    return run


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def test_a_report_names_the_convention_of_every_score(evaluate: Evaluate) -> None:
    run = evaluate()
    assert (run.code, run.errors) == (0, "")
    rows = run.output.splitlines()
    assert rows[0] == "reference    ref.de, 120 sentences"
    assert rows[1] == "hypothesis   ours.de"
    scores = [n for n, row in enumerate(rows) if row.startswith(("sacreBLEU", "tokenised", "chrF"))]
    assert len(scores) == 5
    assert all(rows[n + 1].startswith("  nrefs:1|case:") for n in scores)
    assert max(map(len, rows)) <= 80
    assert f"{tokenised_bleu('de', 'split').measure(OURS, REFERENCES).value:.2f}" in run.output
    assert rows[-1] == "Intervals: bootstrap, 1,000 resamples, seed 12345."


def test_two_systems_are_compared(evaluate: Evaluate) -> None:
    run = evaluate("ours.de", "ref.de", "--other", "theirs.de")
    assert run.code == 0
    _, comparison = run.output.split("hypothesis − other")
    assert "other        theirs.de" in run.output
    assert comparison.count("100.0%") == 4
    assert "Paired bootstrap, 1,000 resamples, seed 12345" in comparison


def test_json_contains_all_fields(evaluate: Evaluate) -> None:
    run = evaluate("ours.de", "ref.de", "--other", "theirs.de", "--json")
    report = json.loads(run.output)
    assert report["reference"] == "ref.de"
    assert report["sentences"] == 120
    assert [system["name"] for system in report["systems"]] == ["ours.de", "theirs.de"]
    for system in report["systems"]:
        assert all(score["convention"]["signature"] for score in system["scores"])
    first = report["systems"][0]["scores"][0]
    assert first["convention"]["name"] == "sacreBLEU"
    assert first["interval"]["low"] < first["value"] < first["interval"]["high"]
    assert first["breakdown"]["length_ratio"] < 1
    comparison = report["comparisons"][0]
    assert comparison["p_value"] < 0.01
    assert comparison["difference"] == first["value"] - report["systems"][1]["scores"][0]["value"]


def test_the_language_can_be_given(evaluate: Evaluate) -> None:
    assert "tok:moses-fr" in evaluate("ours.de", "ref.de", "--target-language", "fr").output
    write("ref.txt", REFERENCES)
    assert "tok:moses-other" in evaluate("ours.de", "ref.txt").output
    run = evaluate("ours.de", "ref.de", "--target-language", "tlh")
    assert run.code == 2
    assert "tlh" in run.errors


def test_compressed_files_are_read(evaluate: Evaluate) -> None:
    Path("ref.de.gz").write_bytes(gzip.compress(Path("ref.de").read_bytes()))
    assert (
        evaluate("ours.de", "ref.de.gz").output.splitlines()[3:]
        == (evaluate("ours.de", "ref.de").output.splitlines()[3:])
    )


def test_lower_cased_output_gives_a_warning(evaluate: Evaluate) -> None:
    write("lower.de", [line.lower() for line in OURS])
    run = evaluate("lower.de", "ref.de", "--other", "ours.de", "--json")
    assert run.code == 0
    assert run.errors.startswith("transept: warning: lower.de: the hypotheses look lower-cased")
    assert run.errors.count("warning") == 1
    lower, ours = json.loads(run.output)["systems"]
    assert len(lower["warnings"]) == 1
    assert ours["warnings"] == []


def test_few_sentences_give_a_warning(evaluate: Evaluate) -> None:
    write("few.de", REFERENCES[:3])
    assert "transept: warning: 3 sentences are few" in evaluate("few.de", "few.de").errors


def test_different_numbers_of_lines_are_an_error(evaluate: Evaluate) -> None:
    write("short.de", OURS[:100])
    run = evaluate("ours.de", "ref.de", "--other", "short.de")
    assert run.code == 3
    assert run.output == ""
    assert "ref.de has 120, ours.de has 120, short.de has 100" in run.errors


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "bad.de: cannot be read (No such file or directory); check the path"),
        (b"", "bad.de: is empty"),
        (b"\n" * 120, "all references are empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "bad.de, line 1: byte 1 (0x89) is not UTF-8"),
        (b"M\0Z\0\n", "bad.de, line 1: has a NUL byte"),
    ],
)
def test_bad_references_exit_3_with_a_message(
    evaluate: Evaluate, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        Path("bad.de").write_bytes(content)
    run = evaluate("ours.de", "bad.de")
    assert run.code == 3
    assert run.errors.startswith("transept: ")
    assert complaint in run.errors
    assert "Traceback" not in run.errors


@pytest.mark.parametrize(
    "words",
    [
        ["--beam-size", "4", "search options"],
        ["--too-long", "split", "search options"],
        ["--device", "cpu", "model options"],
        ["--engine", "native", "model options"],
        ["--output", "x.de", "--output"],
    ],
    ids=" ".join,
)
def test_evaluate_rejects_unused_options_with_a_hypothesis(
    evaluate: Evaluate, words: list[str]
) -> None:
    *options, named = words
    run = evaluate("ours.de", "ref.de", *options)
    assert (run.code, run.output) == (2, "")
    complaint = f"--hypothesis and {named} cannot be combined; omit one of them"
    assert run.errors == f"transept: {complaint}\n"


def test_hypotheses_come_from_standard_input(evaluate: Evaluate, tmp_path: Path) -> None:
    words = ["evaluate", "--hypothesis", "-", "--reference", str(tmp_path / "ref.de"), "--json"]
    run = subprocess.run(
        [sys.executable, "-m", "transept", *words],
        input=Path("ours.de").read_bytes(),
        capture_output=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert run.returncode == 0, run.stderr.decode()
    piped, direct = json.loads(run.stdout), json.loads(evaluate("ours.de", "ref.de", "--json")[1])
    assert piped["systems"][0]["scores"] == direct["systems"][0]["scores"]


def test_standard_input_cannot_be_both(evaluate: Evaluate) -> None:
    run = evaluate("-", "-")
    assert run.code == 2
    assert "standard input can be read only once" in run.errors
