"""`transept translate --input report.docx --output bericht.docx`."""

import io
import sys
from pathlib import Path

import pytest
from tests.integration.workshop import run
from tests.unit.documents.builders import unzipped, word, zipped

import transept

Capture = pytest.CaptureFixture[str]
RUN = "<w:r><w:rPr><w:{}/></w:rPr><w:t>{}</w:t></w:r>"
BODY = f"<w:p>{RUN.format('b', 'one two ')}{RUN.format('i', 'three')}</w:p>"
SRT = "1\n00:00:01,000 --> 00:00:02,000\none two\n\n"


def test_command_writes_the_same_file_as_the_api(trained: Path, tmp_path: Path) -> None:
    source, output = tmp_path / "a.docx", tmp_path / "b.docx"
    source.write_bytes(word(BODY))
    assert run("translate", "--model", trained, "--input", source, "--output", output) == 0
    transept.load(trained).translate_file(source, tmp_path / "c.docx")
    assert output.read_bytes() == (tmp_path / "c.docx").read_bytes()
    assert b"<w:i/>" in unzipped(output.read_bytes())["word/document.xml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.docx", "b.docx", "c.docx"]


def test_kept_words_stay_and_missing_ones_are_reported(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    source, output = tmp_path / "a.srt", tmp_path / "b.srt"
    source.write_text(SRT)
    words = ["translate", "--model", trained, "--input", source, "--output", output]
    assert run(*words, "--keep", "two") == 0
    assert "two" in output.read_text()
    assert (
        run(*words, "--keep", "two", "--max-length-extra", "0", "--max-length-factor", "0.1") == 0
    )
    assert f"warning: {source}, paragraph 1: the translation lacks 'two'" in capsys.readouterr().err


def test_format_option_reads_standard_input(
    trained: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SRT.encode())))
    assert run("translate", "--model", trained, "--format", "srt") == 0
    expected = transept.load(trained).translate("one two", format="html").text
    assert capsys.readouterr().out == SRT.replace("one two", expected)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--input", "a.docx", "--output", "a.docx"], 2, "is the input; choose another --output"),
        (["--input", "a.docx", "--output", "no/b.docx"], 3, "its directory does not exist"),
        (["--input", "a.docx", "a.docx", "--output", "b.docx"], 2, "are translated one by one"),
        (["--format", "docx", "text"], 2, "are translated one by one"),
        (["--input", "a.docx", "--json"], 2, "the format docx and --json cannot be combined"),
        (["--input", "a.docx", "--n-best", "2"], 2, "the format docx and --n-best cannot be"),
        (["--input", "a.pdf", "--output", "b.pdf"], 2, "the formats are .txt, .htm"),
        (["--input", "bad.docx", "--output", "b.docx"], 3, "bad.docx: is damaged"),
        (["--input", "bomb.docx", "--output", "b.docx"], 3, "bomb.docx: has a member"),
        (["--input", "gone.docx", "--output", "b.docx"], 3, "gone.docx: cannot be read"),
    ],
)
def test_wrong_files_and_options_are_rejected_before_a_model_is_loaded(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.docx").write_bytes(word(BODY))
    Path("bad.docx").write_bytes(b"PK")
    Path("bomb.docx").write_bytes(zipped({"word/document.xml": bytes(9_000_000)}))
    assert run("translate", "--model", "absent", *words) == code
    out, said = capsys.readouterr()
    assert complaint in said
    assert out == ""
    assert Path("a.docx").read_bytes() == word(BODY)
    assert not Path("b.docx").exists()
