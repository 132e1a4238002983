"""`transept translate --format`: documents with markup."""

import gzip
import io
import json
import re
import sys
from pathlib import Path

import pytest
from tests.integration.workshop import run

import transept

Capture = pytest.CaptureFixture[str]
PAGE = """<!doctype html>
<h1 class="x">One two</h1>\r
<p>Three <b>four</b> five.  Six
seven.</p><pre> eight </pre>
"""


def test_an_html_file_is_translated_as_one_document(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(PAGE.encode())
    expected = transept.load(trained).translate(PAGE, format="html").text
    assert re.sub(r">[^<]*", ">", expected) == re.sub(r">[^<]*", ">", PAGE)
    assert "\r" in expected
    assert "<pre> eight </pre>\n" in expected
    words = ["translate", "--model", trained]
    assert run(*words, "--input", path) == 0
    out, said = capsys.readouterr()
    assert (out, said) == (expected, "")
    packed = tmp_path / "page.htm.gz"
    packed.write_bytes(gzip.compress(PAGE.encode()))
    output = tmp_path / "out.html"
    assert run(*words, "--input", packed, "--output", output) == 0
    assert output.read_bytes() == expected.encode()


def test_a_markdown_file_is_translated_as_one_document(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    page = "# One\n\n- two\n  three\n\n```\nfour\n```\n"
    path = tmp_path / "page.md"
    path.write_text(page)
    assert run("translate", "--model", trained, "--input", path) == 0
    out = capsys.readouterr().out
    assert out == transept.load(trained).translate(page, format="markdown").text
    assert out.startswith("# ")
    assert "\n\n- " in out
    assert out.endswith("\n\n```\nfour\n```\n")


def test_each_file_and_each_argument_is_a_document(
    trained: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ["<p>one\ntwo</p>\n", "<p>three</p>"]
    for number, page in enumerate(pages):
        (tmp_path / f"{number}.html").write_text(page)
    words = ["translate", "--model", trained]
    assert run(*words, "--input", tmp_path / "0.html", tmp_path / "1.html") == 0
    both = capsys.readouterr().out
    assert both == "".join(
        one.text for one in transept.load(trained).translate(pages, format="html")
    )
    assert run(*words, "--format", "html", *pages) == 0
    assert capsys.readouterr().out == both.replace("</p>", "</p>\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("".join(pages).encode())))
    assert run(*words, "--format", "html", "--json") == 0
    assert json.loads(capsys.readouterr().out)["translation"] == both


def test_format_text_translates_markup_line_by_line(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "page.html"
    path.write_text("one\ntwo\n")
    assert run("translate", "--model", trained, "--input", path, "--format", "text") == 0
    expected = transept.load(trained).translate(["one", "two"])
    assert capsys.readouterr().out.splitlines() == [one.text for one in expected]


def test_a_sentence_of_a_document_that_is_too_long_is_split_or_rejected(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "page.html"
    path.write_text(f"<p>one</p><p>{'two three ' * 100}</p>")
    words = ["translate", "--model", trained, "--input", path]
    assert run(*words) == 0
    assert f"warning: {path}: split a sentence of" in capsys.readouterr().err
    assert run(*words, "--too-long", "refuse") == 3
    assert f"transept: {path}: the sentence 'two three" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--n-best", "2"], "the format html and --n-best cannot be combined"),
        (["--scores", "--alignments"], "the format html and --scores, --alignments cannot be"),
        (["--stream"], "the format html and --stream cannot be combined"),
        (["--prefix", "x"], "the format html and --prefix cannot be combined"),
        (["--input", "other.txt"], "the files have different formats (html, text)"),
        (["--format", "pdf"], "--format"),
    ],
)
def test_options_that_do_not_fit_a_document_are_rejected(
    trained: Path, tmp_path: Path, capsys: Capture, words: list[str], complaint: str
) -> None:
    path = tmp_path / "page.html"
    path.write_text("<p>one</p>")
    assert run("translate", "--model", trained, "--input", path, *words) == 2
    out, said = capsys.readouterr()
    assert complaint in said
    assert out == ""
