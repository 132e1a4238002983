"""`transept export`, and `translate` with engines and as a stream."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import ctranslate2
import pytest
from sentencepiece import SentencePieceProcessor
from tests.integration.workshop import Workshop, prepare_otherwise, run

import transept
from transept.apps.convert import commands as cli
from transept.formats import ctranslate2_writer as exporter

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="session")
def int8(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("quantized") / "int8"
    assert run("export", "--model", trained, "--to", "int8", "--output", output) == 0
    return output


def test_command_offers_the_formats_of_the_exporter() -> None:
    assert get_args(cli.Quantization) == get_args(exporter.Quantization)


def test_an_export_translates_without_transept(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "there"
    words = ["export", "--model", trained, "--to", "ctranslate2", "--output", output]
    assert run(*words) == 0
    said = capsys.readouterr().out
    assert str(output / "tokenizer/tokenizer.model") in said
    assert "|Y|^α" in said
    cutter = SentencePieceProcessor(str(output / "tokenizer/tokenizer.model"))
    translator = ctranslate2.Translator(str(output), intra_threads=1)
    pieces = cutter.encode("one two three", out_type=str)
    (result,) = translator.translate_batch([pieces], beam_size=1)
    assert run("translate", "--model", trained, "one two three", "--beam-size", 1, "--raw") == 0
    assert capsys.readouterr().out.strip() == cutter.decode(result.hypotheses[0])
    assert run(*words) == 4
    assert "already exists" in capsys.readouterr().err
    assert run("translate", "--model", output, "one") == 4
    assert "is a CTranslate2 model" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize(("width", "alpha"), [(1, 0.6), (4, 0), (4, 0.6)])
def test_both_engines_rank_by_the_same_scores(
    trained: Path, workshop: Workshop, capsys: Capture, width: int, alpha: float
) -> None:
    # Without --raw, repeated words are written once, so different outputs may give one text.
    words = ["translate", "--model", trained, "-i", workshop.directory / "dev.en", "--scores"]
    words += ["--beam-size", width, "--length-penalty", alpha, "--raw"]
    outputs = []
    for engine in ("native", "ctranslate2"):
        assert run(*words, "--engine", engine) == 0
        out, said = capsys.readouterr()
        assert "engine" not in said
        outputs.append([line.split("\t") for line in out.splitlines()])
    pairs = [(ours, theirs) for ours, theirs in zip(*outputs, strict=True)]
    alike = [(float(a), float(b)) for (a, text), (b, other) in pairs if text == other]
    assert all(a == pytest.approx(b, abs=1e-4) for a, b in alike)
    if width == 1:
        assert len(alike) == len(pairs)
    # This model has learnt little. Where the two find something else, ours is the better one.
    ahead = sum(float(theirs[0]) > float(ours[0]) + 1e-4 for ours, theirs in pairs)
    assert ahead <= 0.1 * len(pairs)


def test_a_quantized_model_serves_like_any(
    trained: Path, int8: Path, workshop: Workshop, tmp_path: Path, capsys: Capture
) -> None:
    assert run("info", int8) == 0
    assert re.search(r"stored in +int8", capsys.readouterr().out)
    assert run("translate", "--model", int8, "one two", "--engine", "native") == 0
    out, said = capsys.readouterr()
    assert out.strip()
    assert said == ""
    words = ["export", "--model", trained, "--to", "bf16", "--output", tmp_path / "bf16"]
    assert run(*words) == 0
    assert re.search(r"error of a matrix +at most 0\.\d+%", capsys.readouterr().out)
    dev = workshop.directory / "dev.en"
    outputs = []
    for model in (trained, tmp_path / "bf16"):
        assert run("translate", "--model", model, "--input", dev, "--engine", "native") == 0
        outputs.append(capsys.readouterr().out.splitlines())
    assert sum(map(str.__eq__, *outputs)) >= 50
    assert run("export", "--model", int8, "--to", "bf16", "--output", tmp_path / "x") == 4
    assert "is already int8" in capsys.readouterr().err
    assert run(*words, "--quantization", "int8") == 2
    assert "--quantization int8: --to bf16 has none; omit it" in capsys.readouterr().err


def test_fastest_is_native_except_for_a_model_of_integers(trained: Path, int8: Path) -> None:
    names = []
    for path in (trained, int8):
        model = transept.load(path, device="cpu", engine="fastest")
        assert model.translate("one two").text
        assert model.score("one", "eins").log_probability < 0
        names.append(model.engine.name)
    assert names == ["native", "CTranslate2 int8"]


def test_notices_of_other_engines_are_not_printed(int8: Path, capsys: Capture) -> None:
    for option in ("--sample", "--stream"):
        assert run("translate", "--model", int8, option, "one two") == 0
        assert capsys.readouterr().err == ""


def test_native_engine_is_used_without_ctranslate2(
    int8: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert run("translate", "--model", int8, "one two") == 0
    assert capsys.readouterr().err == ""
    export = ["export", "--model", int8, "--to", "ctranslate2", "--output", tmp_path / "x"]
    for words in (["translate", "--model", int8, "one", "--engine", "ctranslate2"], export):
        assert run(*words) == 2
        assert "pip install 'transept[ctranslate2]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--model", "{int8}", "--engine", "ctranslate2"], "cannot run an ensemble of 2 models"),
        (["--engine", "fused", "--device", "cpu"], "fused does not support the device 'cpu'"),
        (
            ["--stream", "--n-best", "2", "--json"],
            "--stream and --n-best, --json cannot be",
        ),
        (["--stream", "--sample"], "--stream and --sample cannot be"),
        (
            ["--stream", "--engine", "ctranslate2"],
            "--stream and --engine ctranslate2 cannot be",
        ),
        (
            ["--sample", "--engine", "ctranslate2"],
            "--sample and --engine ctranslate2 cannot be combined",
        ),
    ],
)
def test_incompatible_options_are_rejected(
    trained: Path, int8: Path, capsys: Capture, words: list[str], complaint: str
) -> None:
    given = [word.format(int8=int8) for word in words]
    assert run("translate", "one", "--model", trained, *given) == 2
    assert complaint in capsys.readouterr().err


# --- streams ---------------------------------------------------------------------------------


def test_a_stream_ends_as_the_translation(
    trained: Path, workshop: Workshop, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = ["translate", "--model", trained, "One two. Three", "", "four five"]
    for width in (1, 4):
        assert run(*words, "--beam-size", width) == 0
        whole = capfdbinary.readouterr().out
        assert run(*words, "--beam-size", width, "--stream") == 0
        assert capfdbinary.readouterr().out == whole


@pytest.mark.slow
def test_a_terminal_shows_what_may_still_change(trained: Path) -> None:
    here, there = pty.openpty()
    words = [sys.executable, "-m", "transept", "translate", "one two three four"]
    words += ["--model", str(trained)]
    plain = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    with subprocess.Popen([*words, "--stream"], stdout=there, stderr=subprocess.PIPE) as process:
        os.close(there)
        shown = "".join(_read(here))
        assert process.stderr is not None
        assert process.stderr.read() == b""
    os.close(here)
    assert "\x1b[2m" in shown
    assert as_seen(shown) == plain


def _read(terminal: int) -> Iterator[str]:
    """Read everything written to it, until all writers have closed it."""
    with io.TextIOWrapper(io.FileIO(terminal, closefd=False), "utf-8", newline="") as screen:
        while True:
            try:
                if not (some := screen.read(1)):
                    return
            except OSError:  # Linux says so
                return
            yield some


def as_seen(written: str) -> str:
    """The final content of the line, as a terminal interprets the codes."""
    cells: list[str] = []
    column = 0
    for code, move, letter in re.findall(r"\x1b\[(\d*)([A-Za-z])|([^\x1b])", written):
        if move == "D":
            column -= int(code)
        elif move == "K":
            del cells[column:]
        elif letter and letter not in "\r\n":
            cells[column:] = [letter, *cells[column + 1 :]]
            column += 1
    return "".join(cells)


def test_shortlist_keeps_few_tokens_and_the_same_translation(
    trained: Path, workshop: Workshop, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "short.safetensors"
    texts = [
        "--source",
        workshop.directory / "train.en",
        "--target",
        workshop.directory / "train.de",
    ]
    prepare = ["data", "prepare", *texts, "--tokenizer", workshop.tokenizer]
    shutil.copytree(workshop.directory / "train-ids", tmp_path / "train-ids")
    prepare += ["--output", tmp_path / "train-ids", "--shortlist"]
    assert run(*prepare, file) == 0
    assert f"shortlist  {file}" in capsys.readouterr().out
    assert run(*prepare, tmp_path / "no" / "where") == 3
    assert "cannot be written (No such file or directory)" in capsys.readouterr().err
    outputs = []
    for more in ([], ["--shortlist", file]):
        dev = workshop.directory / "dev.en"
        # Greedily, because a beam depends on the probabilities, which few tokens share.
        words = ["translate", "--model", trained, "-i", dev, "--device", "cpu", "--beam-size", 1]
        assert run(*words, "--raw", *more) == 0
        outputs.append(capsys.readouterr().out.splitlines())
    # All words occur together in some pair, so that each can be output.
    assert sum(map(str.__eq__, *outputs)) >= 0.9 * len(outputs[0])
    given = ["translate", "one", "--model", trained, "--shortlist", file]
    assert run(*given, "--prefix", "zehn zehn zehn") == 0
    alone = capsys.readouterr().out
    assert alone.startswith("zehn zehn zehn")
    assert run(*given, "--prefix", "zehn zehn zehn", "--stream") == 0
    assert capsys.readouterr().out == alone
    assert run(*given, "--engine", "ctranslate2") == 2
    assert "requires the native engine" in capsys.readouterr().err
    prepare_otherwise(tmp_path, "--shortlist", file)
    assert run(*given) == 3
    assert "not made for the model's source and target vocabulary" in capsys.readouterr().err
    assert run("translate", "one", "--model", trained, "--shortlist", trained / "config.toml") == 3
    assert "is not a shortlist" in capsys.readouterr().err
