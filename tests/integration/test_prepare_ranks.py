"""`torchrun … -m transept data prepare`: one corpus, however many ranks make it, or die at it."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.torchrun import Job
from tests.integration.workshop import run

from transept.data.shards import Corpus
from transept.text.training import train_tokenizer

ROWS = 10_000
WORDS = ["the", "house", "is", "red", "das", "Haus", "ist", "grün"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer, and text of which something is dropped for every reason."""
    directory = tmp_path_factory.mktemp("place")
    train_tokenizer([" ".join(WORDS)] * 5, vocab_size=300).save(directory / "tokenizer")
    chance = random.Random(0)
    lines = []
    for number in range(ROWS):
        source, target = (" ".join(chance.choices(WORDS, k=12)) for _ in range(2))
        lines.append(f"{source} {number}\t{target} {number}".encode())
    for faulty in (b"alone", b"\tempty", b"one\t" + b"das Haus " * 40, b"the \xff house\tdas Haus"):
        for _ in range(20):
            lines[chance.randrange(ROWS)] = faulty
    for _ in range(300):
        lines[chance.randrange(ROWS)] = lines[chance.randrange(ROWS)]
    (directory / "text.tsv").write_bytes(b"\n".join(lines) + b"\n")
    return directory


def options(place: Path, output: Path) -> list[str]:
    tokenizer = place / "tokenizer"
    words = ["--tsv", place / "text.tsv", "--tokenizer", tokenizer, "--output", output]
    return ["data", "prepare", *map(str, words), "--workers", "1"]


@pytest.fixture(scope="module")
def expected(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of it."""
    output = tmp_path_factory.mktemp("one") / "corpus"
    assert run(*options(place, output)) == 0
    assert len(Corpus.open(output).manifest.dropped) == 5
    return output


def start(words: list[str], ranks: int, restarts: int = 0) -> Job:
    """Let torchrun start it on so many ranks."""
    output = Path(words[words.index("--output") + 1])
    logs = output.with_name("logs")
    torchrun = ["--standalone", "--nproc-per-node", ranks, "--max-restarts", restarts]
    command = ["-m", "torch.distributed.run", *torchrun, "--log-dir", logs]
    process = subprocess.Popen(
        [sys.executable, *map(str, command), "-m", "tests.integration.impatient", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return Job(process, output, logs)


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def rows_done(job: Job) -> int:
    journal = job.output.with_name(f"{job.output.name}.partial") / "journal.json"
    try:
        return int(json.loads(journal.read_text())["state"]["rows"])
    except FileNotFoundError:
        return 0


def wait_for_rows(job: Job, rows: int) -> None:
    deadline = time.monotonic() + 300
    while rows_done(job) < rows:
        assert job.process.poll() is None, job.end()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("ranks", [2, 3])
def test_several_ranks_make_the_corpus_of_one(
    place: Path, expected: Path, tmp_path: Path, ranks: int
) -> None:
    job = start(options(place, tmp_path / "corpus"), ranks)
    report, errors = job.process.communicate(timeout=300)
    assert job.process.returncode == 0, errors
    assert Corpus.open(job.output).hash == Corpus.open(expected).hash
    assert contents(job.output) == contents(expected)
    assert not job.output.with_name("corpus.partial").exists()
    assert report.count(f"read       {ROWS:,} pairs") == 1, "only rank 0 reports"


def test_kills_of_a_rank_and_of_all_leave_no_trace_in_the_result(
    place: Path, expected: Path, tmp_path: Path
) -> None:
    """Two ranks of which one is killed, torchrun's new ones, all killed, and three at the end."""
    words = options(place, tmp_path / "corpus")
    job = start(words, 2, restarts=1)
    wait_for_rows(job, 1_000)
    first = job.workers()
    os.kill(first[1], signal.SIGKILL)
    rows = 1_000
    while rows < 4_000 or len(set(job.workers()) - set(first)) < 2:
        assert job.process.poll() is None, job.end()
        rows = rows_done(job)
        time.sleep(0.005)
    job.kill()
    assert not job.output.exists()
    kept = rows_done(job)
    assert rows <= kept < ROWS
    job = start(words, 3)
    errors = job.end()
    assert job.process.returncode == 0, errors
    assert f"going on after {kept:,} pairs of an earlier run" in errors
    assert contents(job.output) == contents(expected)
    assert not job.output.with_name("corpus.partial").exists()


def test_torchrun_does_not_throw_away_what_is_done(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "run")
    output = tmp_path / "corpus"
    assert run(*options(place, output), "--restart") == 2
    assert f"remove {output} and {output}.partial instead" in capsys.readouterr().err


def on_machines(words: list[str], places: list[Path]) -> tuple[list[int], list[str]]:
    """Let a rank work in each of these directories: how it ends, and what it says.

    Without torchrun, which would end the others when one has failed: they must do it themselves.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    modules = os.pathsep.join(map(os.path.abspath, sys.path))
    common = {"WORLD_SIZE": str(len(places)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
              "OMP_NUM_THREADS": "1", "PYTHONPATH": modules}  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "transept", *words],
            cwd=place,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | common | {"RANK": str(rank)},
        )
        for rank, place in enumerate(places)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    return [process.returncode for process in processes], errors


def test_where_rank_0_fails_all_end_with_its_error(place: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    output.mkdir()
    (output / "thesis.tex").write_text("years of work")
    codes, errors = on_machines(options(place, output), [tmp_path, tmp_path])
    why = f"{output} exists and is no prepared corpus; choose another --output\n"
    assert codes == [3, 3]
    assert errors[0] == f"transept: {why}"
    assert errors[1] == f"transept: rank 0 on {socket.gethostname()} failed: {why}"


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (b"horse", "rank 1 read other text than rank 0: all ranks must see the same files"),
        pytest.param(b"barn", "this rank does not see what rank 0 sees", marks=pytest.mark.slow),
    ],
)
def test_machines_that_see_other_text_are_found_out(
    place: Path, tmp_path: Path, other: bytes, complaint: str
) -> None:
    """A rank works in a directory of its own, and on a file of its own: as long, or shorter."""
    text = (place / "text.tsv").read_bytes()
    machines = [tmp_path / "first", tmp_path / "second"]
    for machine, here in zip(machines, [text, text.replace(b"house", other)], strict=True):
        machine.mkdir()
        (machine / "text.tsv").write_bytes(here)
    words = [word.replace(f"{place}/text", "text") for word in options(place, tmp_path / "corpus")]
    codes, errors = on_machines(words, machines)
    assert codes == [3, 3], errors
    assert all(complaint in said for said in errors)
    assert not (tmp_path / "corpus").exists()
