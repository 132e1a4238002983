"""`transept translate` from the command line."""

import gzip
import io
import json
import os
import pty
import select
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.integration.workshop import run

import transept

Capture = pytest.CaptureFixture[str]
TRANSLATE = [sys.executable, "-m", "transept", "translate", "--model"]


def read_until(terminal: int, expected: bytes) -> bytes:
    """Read a terminal until the expected text appears or the output ends."""
    seen = b""
    while expected not in seen and select.select([terminal], [], [], 120)[0]:
        try:
            seen += os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
    return seen


def test_at_a_terminal_each_line_is_answered_before_the_next(trained: Path) -> None:
    terminal, theirs = pty.openpty()
    command = [*TRANSLATE, str(trained)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        assert b"Ctrl-D" in read_until(terminal, b"to end.\r\n")
        for text in (b"one\n", b"one\n"):
            os.write(terminal, text)
            answer = read_until(terminal, b"ei").removeprefix(b"one\r\n")
            assert b"\x1b" not in answer  # no bar where the results are
        os.write(terminal, b"\x04")
        assert process.wait(120) == 0
    os.close(terminal)


@pytest.mark.parametrize(
    "words",
    [
        "translate -i text",
        "translate -i text -o output",
        "score --source text --target text",
        "score --source text --target text --perplexity",
    ],
)
def test_a_bar_is_shown_where_results_are_not(
    words: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, result = tmp_path / "text", tmp_path / "result"
    text.write_text("one two three\n" * 40)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    terminal, theirs = pty.openpty()
    with ThreadPoolExecutor() as pool:
        seen = pool.submit(read_until, terminal, b"never")
        with (
            result.open("w") as file,
            os.fdopen(theirs, "w") as screen,
            redirect_stdout(file),
            redirect_stderr(screen),
        ):
            assert run(*words.split(), "--model", trained) == 0
        assert b"40/40" in seen.result()
    os.close(terminal)
    assert b"\x1b" not in result.read_bytes()


def test_results_are_utf_8_whatever_the_locale(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run("translate", "five", "--model", trained, "--prefix", "fünf") == 0
    assert written.getvalue().decode("utf-8").startswith("fünf")


def test_each_line_gives_one_line(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    lines = "one two. Three! \n\n  \nfour\u2028five\n\ufeffsix\r\nseven"
    command = [*TRANSLATE, str(trained)]
    piped = subprocess.run(command, input=lines.encode(), capture_output=True, check=False)
    assert (piped.returncode, piped.stderr) == (0, b"")
    out = piped.stdout.decode()
    assert out.count("\n") == 6
    first, second, third, fourth, fifth, last = out.split("\n")[:-1]
    assert (second, third) == ("", "  ")
    assert first[-1] == " "
    assert "\u2028" in fourth
    assert fifth[-1] == "\r"
    assert last
    plain, packed = tmp_path / "text.en", tmp_path / "more.en.gz"
    plain.write_text(lines + "\n", encoding="utf-8")
    packed.write_bytes(gzip.compress(b"one two. Three! "))
    assert run("translate", "--model", trained, "--input", plain, packed) == 0
    assert capsys.readouterr().out == f"{out}{first}\n"
    assert run("translate", "--model", trained, "-i", plain, "--read-ahead", 1) == 0
    assert capsys.readouterr().out == out


def test_arguments_are_texts_and_their_lines_are_lines(trained: Path, capsys: Capture) -> None:
    assert run("translate", "one\ntwo", "", "--model", trained) == 0
    one, two, empty = capsys.readouterr().out.split("\n")[:-1]
    assert empty == ""
    assert run("translate", "--model", trained, "one", "two") == 0
    assert capsys.readouterr().out == f"{one}\n{two}\n"


def test_a_text_may_begin_with_a_dash(trained: Path, capsys: Capture) -> None:
    assert run("translate", "--model", str(trained), "--", "a", "- b c.", "--d") == 0
    expected = capsys.readouterr().out
    assert len(expected.splitlines()) == 3
    assert run("translate", "--model", str(trained), "a", "- b c.", "--", "--d") == 2
    assert "Put text that begins with a dash after" in capsys.readouterr().err


def test_sentences_are_split_by_default(trained: Path, capsys: Capture) -> None:
    assert run("translate", "One two.  Three four.", "--model", trained, "--json") == 0
    split = json.loads(capsys.readouterr().out)
    assert [one["source"] for one in split["sentences"]] == ["One two.", "Three four."]
    parts = [one["translation"] for one in split["sentences"]]
    assert split["translation"] == "  ".join(parts)
    assert split["score"] == pytest.approx(sum(one["score"] for one in split["sentences"]))
    assert (
        run("translate", "One two.  Three four.", "--model", trained, "--json", "--no-split") == 0
    )
    assert len(json.loads(capsys.readouterr().out)["sentences"]) == 1


def test_n_best_scores_and_json(trained: Path, capsys: Capture) -> None:
    assert run("translate", "one two", "", "--model", trained, "--n-best", "3") == 0
    rows = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["0", "0", "0", "1"]
    assert [len(row) for row in rows] == [4] * 4
    assert float(rows[0][3]) >= float(rows[1][3]) >= float(rows[2][3])
    assert float(rows[0][2].removeprefix("LogP= ")) <= float(rows[0][3])
    assert run("translate", "", "--model", trained, "--json") == 0
    (nothing,) = json.loads(capsys.readouterr().out)["outputs"]
    assert nothing == {"text": "", "score": 0, "log_probability": 0, "finished": True}
    assert run("translate", "one two", "--model", trained, "--scores") == 0
    score, _, text = capsys.readouterr().out.strip().partition("\t")
    assert [text, float(score)] == [rows[0][1], pytest.approx(float(rows[0][3]))]
    assert run("translate", "one two", "--model", trained, "--json") == 0
    (output,) = json.loads(capsys.readouterr().out)["outputs"]
    assert (output["text"], output["finished"]) == (text, True)
    assert "alignment" not in output


def test_alignments_are_in_pharaoh_format(trained: Path, capsys: Capture) -> None:
    words = ["translate", "one two", "", "--model", trained, "--alignments"]
    assert run(*words) == 0
    (text, links), (empty, none) = (
        line.split(" ||| ") for line in capsys.readouterr().out.splitlines()
    )
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    assert sorted(j for _, j in pairs) == list(range(len(text.split())))
    assert (empty, none) == ("", "")
    assert run(*words, "--n-best", 2) == 0
    assert all(line.count("|||") == 4 for line in capsys.readouterr().out.splitlines())
    assert run(*words, "--json") == 0
    described = json.loads(capsys.readouterr().out.splitlines()[0])["outputs"][0]
    assert described["alignment"] == [list(pair) for pair in sorted(pairs)]


def test_samples_are_drawn_from_a_seed(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    many = tmp_path / "many"
    lines = ["one two three", "four", "five six", "seven two", "one two three", "eight one"]
    many.write_text("".join(f"{line}\n" for line in lines))
    words = ["translate", "--model", trained, "-i", many, "--sample", "--temperature", 2]
    outputs = []
    for seed in (1, 1, 2):
        assert run(*words, "--seed", seed) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]
    drawn = outputs[0].split("\n")  # a draw may have other line breaks in it
    assert drawn[0] == drawn[4]
    assert len(set(drawn)) > 2
    # How many lines are read at once changes nothing, nor does where they go.
    assert run(*words, "--seed", 1, "--read-ahead", 2) == 0
    assert capsys.readouterr().out == outputs[0]
    assert run(*words, "--seed", 1, "--read-ahead", 4, "-o", tmp_path / "drawn") == 0
    assert (tmp_path / "drawn").read_bytes().decode() == outputs[0]


def test_any_number_of_samples_requires_no_beam(trained: Path, capsys: Capture) -> None:
    words = ["translate", "one two three", "--model", trained, "--sample", "--json"]
    assert run(*words, "--n-best", 6) == 0
    assert len(json.loads(capsys.readouterr().out)["outputs"]) == 6


def test_a_prefix_begins_the_translation(trained: Path, capsys: Capture) -> None:
    assert run("translate", "one two", "--model", trained, "--prefix", "zehn") == 0
    assert capsys.readouterr().out.startswith("zehn")


def test_several_models_form_an_ensemble(trained: Path, capsys: Capture) -> None:
    steps = [trained / f"checkpoints/step-00000{step}" for step in (390, 400)]
    assert run("translate", "--model", steps[0], "--model", steps[1], "one two") == 0
    assert capsys.readouterr().out


LONG = "one two three four five six seven eight nine ten; " * 20


def test_too_long_sentence_is_split_with_a_warning_or_rejected_by_line(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "long.en"
    path.write_text(f"one\n{LONG}\ntwo\n")
    assert run("translate", "--model", trained, "one") == 0
    before = capsys.readouterr().out
    words = ["translate", "--model", trained, "--input", path]
    n_tokens = len(transept.load(trained).source_tokenizer.encode(LONG.strip())) + 1
    warning = f"split a sentence of {n_tokens} tokens; see --too-long and --max-source-length"
    for option in ((), ("--stream",), ("--output", tmp_path / "long.out")):
        assert run(*words, *option) == 0
        out, complaint = capsys.readouterr()
        assert complaint == f"transept: warning: {path}, line 2: {warning}\n"
        assert len((out or (tmp_path / "long.out").read_text()).splitlines()) == 3
    assert run(*words, "--too-long", "refuse") == 3
    out, complaint = capsys.readouterr()
    assert out == before
    assert f"{path}, line 2: the sentence 'one two three" in complaint
    assert "--too-long split splits it" in complaint
    assert run("translate", "one", LONG, "--model", trained, "--too-long", "refuse") == 3
    assert "text 2: the sentence" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["x", "--model", "absent"], 4, "is neither a directory nor a bundled model"),
        (
            ["x", "--model", "{trained}", "--n-best", "9"],
            2,
            "--n-best: 9 must not be more than the beam size",
        ),
        (["--model", "{trained}", "--input", "absent.en"], 3, "absent.en: cannot be read"),
        (["--model", "{trained}", "--input", "{trained}"], 3, "Is a directory"),
        (["x", "--model", "{trained}", "--input", "a"], 2, "cannot be combined"),
        (["x", "--model", "{trained}", "--temperature", "2"], 2, "need --sample"),
        (["x", "--model", "{trained}", "--seed", "0"], 2, "need --sample"),
        *(
            (
                ["x", "--model", "{trained}", "--sample", *default],
                2,
                "--sample cannot be combined with --beam-size or --length-penalty",
            )
            for default in (["--beam-size", "4"], ["--length-penalty", "0.6"])
        ),
        (["x", "--model", "{trained}", "--sample", "--top-p", "2"], 2, "--top-p: 2.0"),
        (["x", "--model", "{trained}", "--sample", "--n-best", "0"], 2, "--n-best: 0 must be at"),
        (["x", "--model", "{trained}", "--read-ahead", "0"], 2, "--read-ahead"),
        (["x", "--model", "{trained}", "--device", "tpu9"], 2, "--device: 'tpu9' cannot be"),
        (["x", "--model", "{trained}", "--source-language", "tlh"], 2, "tlh"),
        (["x", "--model", "{trained}", "--sample", "--keep", "x"], 2, "excludes --glossary and"),
        (["x", "--model", "{trained}", "--glossary", "absent.tsv"], 3, "absent.tsv: cannot be"),
    ],
)
def test_invalid_translations_are_rejected(
    trained: Path, capsys: Capture, words: list[str], code: int, complaint: str
) -> None:
    assert run("translate", *(word.format(trained=trained) for word in words)) == code
    out, said = capsys.readouterr()
    assert complaint in said
    assert out == ""


@pytest.mark.parametrize(
    ("junk", "complaint"),
    [
        (b"one\n\x89PNG\r\n", "line 2: byte 1 (0x89) is not UTF-8"),
        (b"one\nP\0K\0\n", "line 2: has a NUL byte, so it is not text"),
    ],
)
def test_binary_input_is_rejected_before_translation(
    trained: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    junk: bytes,
    complaint: str,
) -> None:
    path = tmp_path / "junk"
    path.write_bytes(b"one\n" * 50 + junk)
    assert run("translate", "--model", trained, "--input", path) == 3
    out, said = capsys.readouterr()
    assert out == ""
    assert complaint.replace("line 2", "line 52") in said
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(junk)))
    assert run("translate", "--model", trained) == 3
    assert f"standard input, {complaint}" in capsys.readouterr().err


def test_a_lone_dash_is_standard_input(
    trained: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["translate", "--model", trained]
    assert run(*words, "one two", "three") == 0
    expected = capfdbinary.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one two\nthree\n")))
    assert run(*words, "-") == 0
    assert capfdbinary.readouterr().out == expected
    assert run(*words, "-", "one") == 2
    assert b"(standard input) cannot be combined with other texts" in capfdbinary.readouterr().err


def test_truncated_translation_gives_a_warning(
    trained: Path, tmp_path: Path, capsys: Capture
) -> None:
    text = tmp_path / "text.en"
    text.write_text("\none\n")  # a word, which is not translated in parts
    words = ["translate", "--model", trained, "--input", text, "--beam-size", 1]
    assert run(*words) == 0
    assert "maximum length" not in capsys.readouterr().err
    for more in ([], ["--output", tmp_path / "out.de"]):
        assert run(*words, *more, "--max-length-factor", 0, "--max-length-extra", 1) == 0
        warning = f"1 translation reached the maximum length, the first at {text}, line 2"
        assert warning in capsys.readouterr().err


def test_terms_are_in_translation(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    terms, text = tmp_path / "terms.tsv", tmp_path / "text.en"
    terms.write_text("# numbers\ntwo\tzwoo\n")
    text.write_text("one two\nthree\n")
    words = ["translate", "--model", trained, "--input", text, "--glossary", terms]
    words += ["--keep", "three", "--keep", "four", "--max-length-extra", "10"]
    assert run(*words) == 0
    out, said = capsys.readouterr()
    first, second = out.splitlines()
    assert "zwoo" in first.split()
    assert "three" in second.split()
    assert said == ""
    output = tmp_path / "out.de"
    for more in (["--stream"], ["--output", output], ["--engine", "native", "--json"]):
        assert run(*words, *more) == 0
        found = capsys.readouterr().out + (output.read_text() if "--output" in more else "")
        for term in (first, second):
            assert term in found


def test_changed_glossary_is_another_output(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    terms, output = tmp_path / "terms.tsv", tmp_path / "out.de"
    words = ["translate", "--model", trained, "one two", "--output", output, "--glossary", terms]
    for term in ("zwo", "zwoo"):
        terms.write_text(f"two\t{term}\n")
        output.unlink(missing_ok=True)
        assert run(*words) == 0
        assert term in output.read_text().split()


def test_missing_term_gives_a_warning(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    text = tmp_path / "text.en"
    text.write_text("one\none two\n")
    words = ["translate", "--model", trained, "--input", text, "--keep", "two"]
    for more in ([], ["--stream"], ["--output", tmp_path / "out.de"]):
        assert run(*words, *more, "--max-length-factor", 0, "--max-length-extra", 1) == 0
        said = capsys.readouterr().err
        assert f"warning: {text}, line 2: the translation lacks 'two'" in said
        assert "line 1: the translation" not in said
