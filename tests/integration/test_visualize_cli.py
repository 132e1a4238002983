"""`transept visualize`: a file of each format, and errors that help."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.integration.workshop import run

import transept

Capture = pytest.CaptureFixture[str]


def test_each_format_is_written(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    words = ["visualize", "--model", trained, "one two three", "--target", "drei zwei eins"]
    for name in ("a.svg", "a.html", "a.json"):
        assert run(*words, "--figure", "heat", "--kind", "source", "-o", tmp_path / name) == 0
        out, said = capsys.readouterr()
        assert out == ""
        assert name in said
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert "drei" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    described = json.loads((tmp_path / "a.json").read_text())
    model = transept.load(trained)
    expected = model.attend("one two three", "drei zwei eins").joined()
    assert described == json.loads(json.dumps(expected.described()))


def test_the_figures_of_the_paper(trained: Path, tmp_path: Path) -> None:
    for figure in ("3", "4", "5"):
        words = ["visualize", "--model", trained, "one two three", "--figure", figure]
        chosen = ["--layer", "1", "--heads", "1-2", *([] if figure == "5" else ["--word", "two"])]
        output = tmp_path / f"{figure}.svg"
        assert run(*words, *chosen, "-o", output) == 0
        assert "layer 1" in output.read_text()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-o", "a.png"], 2, "a.png: its name must end in one of .svg, .html, .json"),
        (["-o", "a.svg", "--heads", "one"], 2, "--heads one: write numbers such as 1,2 or 1-4"),
        (["-o", "a.svg", "--heads", "3"], 2, "head 3: the model has heads 1 to 2"),
        (["-o", "a.svg", "--heads", "2-1"], 2, "--heads 2-1: write numbers such as 1,2 or 1-4"),
        (["-o", "a.svg", "--figure", "3"], 2, "set --word to one of: one two </s>"),
        (["-o", "a.svg", "--word", "one"], 2, "figure 5 shows all words: omit --word"),
        (
            ["-o", "a.svg", "--figure", "4", "--word", "one", "--heads", "1-3"],
            2,
            "figure 4 shows two heads",
        ),
        (["-o", "no/where/a.svg"], 3, "no/where/a.svg: cannot be written"),
    ],
)
def test_invalid_options_are_rejected(
    trained: Path, words: list[str], code: int, said: str, capsys: Capture,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert run("visualize", "--model", trained, "one two", *words) == code
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
