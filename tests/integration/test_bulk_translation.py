"""`transept translate --output`: in parts, by one process or several, through interruptions."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from tests.integration.workshop import Workshop, run

WORDS = ("--read-ahead", "4", "--beam-size", "1")
MARK = b"done before\n"


def command(trained: Path, source: Path, output: Path, ranks: int = 0) -> list[str]:
    words = ["-m", "transept", "translate", "--model", str(trained), "--input", str(source)]
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    return [sys.executable, *(start if ranks else []), *words, *WORDS, "--output", str(output)]


@pytest.fixture(scope="module")
def source(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = (workshop.directory / "train.en").read_text().splitlines(keepends=True)
    path = tmp_path_factory.mktemp("text") / "some.en"
    path.write_text("".join(lines[:203]))
    return path


@pytest.fixture(scope="module")
def expected(source: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The whole file, translated at once."""
    output = tmp_path_factory.mktemp("whole") / "out.de"
    words = ["translate", "--model", trained, "--input", source, *WORDS, "--output", output]
    assert run(*words) == 0
    assert not output.with_name("out.de.parts").exists()
    return output.read_bytes()


@pytest.mark.slow
def test_output_file_equals_standard_output(
    source: Path, trained: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text, output = tmp_path / "some.en", tmp_path / "out.de"
    text.write_text("".join(source.read_text().splitlines(keepends=True)[:23]))
    words = ["translate", "--model", trained, "--input", text, *WORDS]
    assert run(*words, "--output", output) == 0
    assert not output.with_name("out.de.parts").exists()
    capfdbinary.readouterr()
    assert run(*words) == 0
    assert capfdbinary.readouterr().out == output.read_bytes()


@pytest.mark.slow
def test_killed_translation_resumes_with_another_number_of_ranks(
    source: Path, trained: Path, expected: bytes, tmp_path: Path
) -> None:
    output = tmp_path / "out.de"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command(trained, source, output), env=environment)
    parts = tmp_path / "out.de.parts"
    while len(list(parts.glob("part-*"))) < 5:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not output.exists()
    (parts / "part-00000003").unlink()
    (parts / "part-00000001").write_bytes(4 * MARK)
    again = subprocess.run(
        command(trained, source, output, ranks=2), env=environment, capture_output=True, check=False
    )
    assert again.returncode == 0, again.stderr
    lines = expected.splitlines(keepends=True)
    assert output.read_bytes().splitlines(keepends=True) == [*lines[:4], *4 * [MARK], *lines[8:]]
    assert not parts.exists()


def test_ranks_do_not_all_write_to_standard_output(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run("translate", "--model", trained, "one two") == 2
    assert "give --output FILE" in capsys.readouterr().err


def test_other_options_and_finished_outputs_are_rejected(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["translate", "--model", trained, "one two", "--output", tmp_path / "out.de"]
    (tmp_path / "out.de.parts").mkdir()
    (tmp_path / "out.de.parts/settings.json").write_text("{}")
    assert run(*words) == 2
    assert "holds parts made with other options" in capsys.readouterr().err
    (tmp_path / "out.de").touch()
    assert run(*words) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.slow
def test_parts_of_two_models_are_not_mixed(
    source: Path, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work, text, output = tmp_path / "run", tmp_path / "text.en", tmp_path / "out.de"
    shutil.copytree(trained, work)
    shutil.rmtree(work / "average-3")
    text.write_text(source.read_text() + 100 * "one two three ")  # too long: it stops there

    def translate(model: Path | str) -> int:
        words = (*WORDS, "--too-long", "refuse")
        return run("translate", "--model", model, "--input", text, *words, "--output", output)

    assert translate(work) == 3
    (used,) = json.loads((tmp_path / "out.de.parts/settings.json").read_text())["models"]["model"]
    assert Path(used).parent == work / "checkpoints"
    assert run("average", work, "--last", "2") == 0
    capsys.readouterr()
    assert translate(work) == 2
    assert "holds parts made with other options" in capsys.readouterr().err
    assert translate(used) == 3
    shutil.rmtree(used)
    shutil.copytree(work / "average-2", used)
    assert translate(used) == 2


def test_parts_of_two_texts_are_not_mixed(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that is corrected in the meantime may be as long as before."""
    text, output = tmp_path / "text.en", tmp_path / "out.de"
    words = ["translate", "--model", trained, "--input", text, *WORDS, "--output", output]
    words += ["--too-long", "refuse"]
    too_long = 100 * "one two three "
    text.write_text(f"one\n\n\n\n{too_long}\n")
    assert run(*words) == 3
    text.write_text(f"two\n\n\n\n{too_long}\n")
    capsys.readouterr()
    assert run(*words) == 2
    assert "made with other options or from other text" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_translation_reports_how_to_resume(
    number: signal.Signals, source: Path, trained: Path, expected: bytes, tmp_path: Path
) -> None:
    output, parts = tmp_path / "out.de", tmp_path / "out.de.parts"
    process = subprocess.Popen(
        command(trained, source, output),
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background hands down that Ctrl-C is to be ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    while not list(parts.glob("part-*")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 75
    kept = f"Finished parts are in {parts}; run the same command to resume"
    assert said == f"transept: stopped. {kept}\n"
    assert not output.exists()
    assert subprocess.run(command(trained, source, output), check=False).returncode == 0
    assert output.read_bytes() == expected


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--input - --output {tmp}/out", "--output needs texts, or --input with files"),
        ("one --output {tmp}/out.gz", "out.gz: the output is not compressed; omit .gz"),
    ],
)
def test_input_that_cannot_be_reread_is_rejected(
    words: str,
    complaint: str,
    trained: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("translate", "--model", trained, *words.format(tmp=tmp_path).split()) == 2
    assert complaint in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
