"""`transept data` from the command line: reports, errors, signals, kills."""

import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import time
from functools import partial
from pathlib import Path

import pytest
from tests.integration.workshop import ran, run

from transept.data.shards import Corpus
from transept.text.spans import MASKS
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer

TRANSEPT = [sys.executable, "-m", "transept", "data"]
# Small chunks, each committed: a run that is killed soon has still done something for good.
NARROW, WIDE, FOREIGN = b"a\tb\n", b"a\ttree\tder\tBaum\n", b"green\tgr\xfcn\n"
IMPATIENT = """
import sys
from pathlib import Path
from transept.data.preparation import formats
from transept.data.preparation.formats import LinePair
from transept.data.preparation.prepare import Preparation, prepare

formats.CHUNK_ROWS = 200

def main():
    source, target, tokenizer, output = map(Path, sys.argv[1:])
    job = Preparation(inputs=(LinePair(source, target),), tokenizer=tokenizer, output=output)
    prepare(job, workers=2, commit_seconds=0)

if __name__ == "__main__":
    main()
"""


def transept(*words: object) -> subprocess.CompletedProcess[str]:
    return ran("data", *words)


def info(*words: object) -> subprocess.CompletedProcess[str]:
    return ran("info", *words)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer, a small corpus with every kind of defect, and a long one to interrupt."""
    directory = tmp_path_factory.mktemp("place")
    words = ["the", "house", "is", "red", "das", "Haus", "ist", "grün"]
    train_tokenizer([" ".join(words)] * 5, vocab_size=300).save(directory / "tokenizer")
    good = [f"the house is {i}\tdas Haus ist {i}" for i in range(300)]
    bad = ["", "alone", "\tempty", f"one\t{'das Haus ' * 40}", good[7]]
    faulty = "\n".join([*good, *bad]).encode() + b"\nthe \xff house\tdas Haus\n"
    (directory / "faulty.tsv").write_bytes(faulty)
    generator = random.Random(0)
    for side in ("en", "de"):
        lines = (" ".join(generator.choices(words, k=12)) + f" {i}\n" for i in range(24_000))
        (directory / f"long.{side}").write_text("".join(lines))
    return directory


@pytest.fixture(scope="module")
def long_corpus(place: Path) -> Path:
    """The long corpus, prepared without interruption."""
    result = transept("prepare", *long_words(place, place / "long"))
    assert result.returncode == 0, result.stderr
    return place / "long"


def long_words(place: Path, output: Path) -> tuple[object, ...]:
    inputs = ("--source", place / "long.en", "--target", place / "long.de")
    return (*inputs, "--tokenizer", place / "tokenizer", "--output", output)


def contents(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def test_prepare_reports_what_it_dropped_and_where(place: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    words = ("--tsv", place / "faulty.tsv", "--tokenizer", place / "tokenizer", "--output", output)
    result = transept("prepare", *words)
    assert result.returncode == 0, result.stderr
    report = " ".join(result.stdout.split())
    assert "read 306 pairs" in report
    assert "kept 300 (98.04%)" in report
    for fault in ("encoding 1", "malformed 2", "empty 1", "ratio 1", "duplicate 1"):
        assert fault in report
    assert f"Each dropped line is listed in {output / 'dropped.tsv'}" in report
    again = transept("prepare", *words)
    assert again.returncode == 0
    assert "nothing to do" in again.stdout
    assert result.stdout.splitlines()[-5:] == again.stdout.splitlines()[-5:]
    otherwise = transept("prepare", *words, "--max-ratio", 2)
    assert otherwise.returncode == 3
    assert "\n  --max-ratio: 3.0 -> 2.0\nChoose another --output, or" in otherwise.stderr


@pytest.mark.parametrize(
    ("text", "options", "warning"),
    [
        (WIDE + NARROW * 3, ["--columns", "3", "4"], "75.00% .* 3 of 4 .* format. Do options"),
        (NARROW * 3, [], "66.67% .* 2 of 3 because: the pair occurred before"),
        (NARROW + WIDE + FOREIGN, [], "33.33% .* 1 of 3 because: not UTF-8 text. Are the files"),
        (NARROW + WIDE + NARROW, [], None),
    ],
)
def test_prepare_warns_where_much_is_dropped(
    place: Path, tmp_path: Path, text: bytes, options: list[str], warning: str | None
) -> None:
    (tmp_path / "x.tsv").write_bytes(text)
    words = ("--tokenizer", place / "tokenizer", "--output", tmp_path / "corpus", "--workers", 0)
    result = transept("prepare", "--tsv", tmp_path / "x.tsv", *options, *words)
    assert result.returncode == 0, result.stderr
    if warning is None:
        assert result.stderr == ""
    else:
        assert re.search(f"^transept: warning: {warning}", result.stderr)


def test_sampled_corpus_has_several_copies_of_each_pair(place: Path, tmp_path: Path) -> None:
    inputs = ("--tsv", place / "faulty.tsv", "--tokenizer", place / "tokenizer")
    words = (*inputs, "--output", tmp_path / "corpus", "--copies", 2)
    result = transept("prepare", *words)
    assert result.returncode == 2
    assert "--copies: 2 would all be the same; set subword_dropout" in result.stderr
    result = transept("prepare", *words, "--subword-dropout", 0.1)
    assert result.returncode == 0, result.stderr
    assert "kept 300 (98.04%), 2 samples of each" in " ".join(result.stdout.split())
    shown = info(tmp_path / "corpus", "--samples", 0).stdout
    assert "600 (6 of 306 dropped), 2 samples of each" in shown


def test_varied_corpus_has_masks(place: Path, tmp_path: Path) -> None:
    english, german = tmp_path / "a.en", tmp_path / "a.de"
    english.write_text("See https://example.org, and pay 1,234.50 to Tom.\n" * 9)
    german.write_text("Siehe https://example.org, und zahle 1.234,50 an Tom.\n" * 9)
    words = ["--vocab-size", 300, "--masks", "--output", tmp_path / "masking"]
    assert run("tokenizer", "train", "--input", english, german, *words) == 0
    inputs = ("--source", english, "--target", german, "--output", tmp_path / "corpus")
    vary = ("--vary.names", 0.99, "--languages", "en", "de")
    result = transept("prepare", *inputs, *vary, "--tokenizer", place / "tokenizer")
    assert result.returncode == 2
    assert "--tokenizer: has no masks" in result.stderr
    result = transept("prepare", *inputs, *vary, "--tokenizer", tmp_path / "masking")
    assert result.returncode == 0, result.stderr
    tokenizer, corpus = Tokenizer.load(tmp_path / "masking"), Corpus.open(tmp_path / "corpus")
    source, target = tokenizer.decode(corpus.source(0)), tokenizer.decode(corpus.target(0))
    assert {*source} & {*MASKS} == {*target} & {*MASKS}
    assert source.startswith(f"See {MASKS[0]}, and pay {MASKS[len(MASKS) // 2]} to ")


def test_prepare_refuses_to_run_on_several_ranks(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = transept("prepare", *long_words(place, tmp_path / "corpus"))
    assert result.returncode == 2
    assert result.stderr.endswith("does not support torchrun: start it without\n")
    assert not (tmp_path / "corpus").exists()


def test_prepare_reads_standard_input(place: Path, tmp_path: Path) -> None:
    text = b'{"translation": {"en": "the house", "de": "das Haus"}}\n'
    words = ("--jsonl", "-", "--keys", "translation.en", "translation.de", "--workers", 0)
    output = tmp_path / "corpus"
    place_words = ("--tokenizer", place / "tokenizer", "--output", output)
    command = [*TRANSEPT, "prepare", *map(str, (*words, *place_words))]
    result = subprocess.run(command, input=text, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert len(Corpus.open(output)) == 1


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        ([], 2, "no input: give --source and --target"),
        (["--source", "a", "b", "--target", "c"], 2, "--source has 2 files and --target 1"),
        (["--source", "a"], 2, "--source has 1 file and --target 0"),
        (["--source", "x.tsv", "--target", "y.de"], 2, "use --tsv instead"),
        (["--source", "x.en", "--target", "y.jsonl.gz"], 2, "use --jsonl instead"),
        (["--tmx", "x.tmx"], 2, "--tmx needs --languages"),
        (["--tsv", "x.tsv", "--columns", "0", "1"], 2, "--columns are numbered from 1"),
        (["--tsv", "x.tsv", "--max-ratio", "0.5"], 2, "--max-ratio: 0.5 must be 0 (no limit)"),
        (["--tsv", "x.tsv", "--workers", "-1"], 2, "--workers must be at least 0"),
        (["--tsv", "x.tsv", "--tags", "named"], 2, "--tags requires --trees"),
        (["--tsv", "missing.tsv"], 3, "missing.tsv: cannot be read"),
        (["--tsv", "missing.tsv", "--tokenizer", "nowhere"], 3, "nowhere"),
    ],
)
def test_invalid_input_is_reported(
    place: Path, tmp_path: Path, words: list[str], code: int, complaint: str
) -> None:
    if "--tokenizer" not in words:
        words = [*words, "--tokenizer", str(place / "tokenizer")]
    result = transept("prepare", "--output", tmp_path / "corpus", *words)
    assert result.returncode == code
    assert complaint in result.stderr
    assert "Traceback" not in result.stderr


def test_bad_tree_is_dropped_unless_a_vocabulary_is_built_from_it(
    place: Path, tmp_path: Path
) -> None:
    good, bad = tmp_path / "good.mrg", tmp_path / "bad.mrg"
    good.write_text("(S (NP (NN house)))\n")
    bad.write_text("(S (NP (NN house)))\nhello\n")
    words = ("--tokenizer", place / "tokenizer", "--workers", 0, "--output")
    stopped = transept("prepare", "--trees", bad, *words, tmp_path / "first")
    assert stopped.returncode == 3
    assert f"{bad}, line 2: 'hello' is outside of any tree" in stopped.stderr
    assert transept("prepare", "--trees", good, *words, tmp_path / "first").returncode == 0
    symbols = ("--target-tokenizer", tmp_path / "first/target_tokenizer")
    dropped = transept("prepare", "--trees", bad, *symbols, *words, tmp_path / "second")
    assert dropped.returncode == 0, dropped.stderr
    assert "kept       1 (50.00%)" in dropped.stdout


def test_bad_encoding_can_stop_everything(place: Path, tmp_path: Path) -> None:
    words = ("--tsv", place / "faulty.tsv", "--tokenizer", place / "tokenizer")
    output = tmp_path / "corpus"
    result = transept("prepare", *words, "--output", output, "--bad-encoding", "stop")
    assert result.returncode == 3
    assert f"{place / 'faulty.tsv'}, line 306: not UTF-8 text (byte 5 is 0xff)" in result.stderr
    assert not output.exists()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_prepare_resumes_after_a_signal(
    place: Path, long_corpus: Path, tmp_path: Path, number: signal.Signals
) -> None:
    output = tmp_path / "corpus"
    words = list(map(str, long_words(place, output)))
    # A separate process group, as in a shell: Ctrl-C reaches the workers too.
    process = subprocess.Popen(
        [*TRANSEPT, "prepare", *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Whoever runs the tests in the background hands down that Ctrl-C is to be ignored.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(output.with_name("corpus.partial") / "corpus/source.ids")
    os.killpg(process.pid, number)
    _, complaint = process.communicate(timeout=120)
    assert process.returncode == 75
    assert complaint.startswith("transept: stopped. Finished work is in")
    assert "Traceback" not in complaint
    assert transept("prepare", *words).returncode == 0
    assert contents(output) == contents(long_corpus)


def wait_for(path: Path) -> None:
    """Wait until the file exists and is not empty."""
    for _ in range(6000):
        if path.exists() and path.stat().st_size:
            return
        time.sleep(0.02)
    raise TimeoutError(path)


@pytest.mark.slow
def test_kills_do_not_change_the_result(place: Path, long_corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    files = [place / "long.en", place / "long.de", place / "tokenizer", output]
    journal = output.with_name("corpus.partial") / "journal.json"
    generator = random.Random(3)
    kills = progress = 0
    while not output.exists():
        process = subprocess.Popen(
            [sys.executable, "-c", IMPATIENT, *map(str, files)], stderr=subprocess.PIPE
        )
        before = journal.stat().st_mtime_ns if journal.exists() else 0
        while kills < 3 and process.poll() is None:
            if journal.exists() and journal.stat().st_mtime_ns != before:
                time.sleep(generator.uniform(0, 0.1))
                process.kill()
                kills += 1
                break
            time.sleep(0.005)
        # Its workers hold the pipe too: that it ends means that they have left by themselves.
        _, complaint = process.communicate(timeout=120)
        assert complaint == b""
        if journal.exists():
            rows = json.loads(journal.read_text())["state"]["rows"]
            assert rows >= progress
            progress = rows
    assert kills == 3
    assert 0 < progress < 24_000
    assert contents(output) == contents(long_corpus)


def test_a_full_disk_loses_nothing(place: Path, long_corpus: Path, tmp_path: Path) -> None:
    output = tmp_path / "corpus"
    words = list(map(str, long_words(place, output)))
    result = subprocess.run(
        [*TRANSEPT, "prepare", *words],
        capture_output=True,
        text=True,
        check=False,
        # No file may grow beyond this: to the program it is as if the disk were full.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
    )
    assert result.returncode == 3
    assert f"{output}: cannot be written ([Errno 27] File too large)" in result.stderr
    assert "Traceback" not in result.stderr
    assert transept("prepare", *words).returncode == 0
    assert contents(output) == contents(long_corpus)


def test_info_describes_a_corpus(long_corpus: Path) -> None:
    shown = info(long_corpus, "--samples", 3)
    assert shown.returncode == 0, shown.stderr
    assert "24,000 (0 of 24,000 dropped)" in shown.stdout
    assert "median" in shown.stdout
    report = json.loads(info(long_corpus, "--samples", 3, "--json").stdout)
    assert report["pairs"] == 24_000
    assert report["sides"]["source"]["unknown_rate"] == 0
    assert [sample["source"] in shown.stdout for sample in report["samples"]] == [True] * 3
    refused = info(long_corpus, "--samples", "-1")
    assert (refused.returncode, refused.stderr) == (2, "transept: --samples must be at least 0\n")


def test_info_verifies_a_corpus(long_corpus: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, content in contents(long_corpus).items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes(content)
    ids = bytearray((copy / "target.ids").read_bytes())
    ids[0] ^= 1
    (copy / "target.ids").write_bytes(ids)
    result = info(copy, "--verify")
    assert result.returncode == 3
    assert "target.ids was altered" in result.stderr


def iwslt(directory: Path) -> None:
    """An archive with the layout of IWSLT 2014."""
    with tarfile.open(directory / "de-en.tgz", "w:gz") as archive:
        names = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
        texts = {f"IWSLT14.{name}.de-en": '<seg id="1"> one </seg>\n' for name in names}
        for side in ("de", "en"):
            files = {f"{name}.{side}.xml": text for name, text in texts.items()}
            files[f"train.tags.de-en.{side}"] = "<url>u</url>\n" + "a sentence\n" * 50
            for name, text in files.items():
                info = tarfile.TarInfo(f"de-en/{name}")
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))


def test_fetch_uses_existing_archives(tmp_path: Path) -> None:
    iwslt(tmp_path)
    words = ("fetch", "iwslt14-de-en", "--output", tmp_path / "out", "--from", tmp_path)
    result = transept(*words)
    assert result.returncode == 0, result.stderr
    assert "48 pairs (train.de, train.en)" in result.stdout
    assert "No checksum is published for de-en.tgz" in result.stdout
    assert "nothing to do" in transept(*words).stdout


def test_fetch_offline_reports_how_to_continue(tmp_path: Path) -> None:
    words = ("fetch", "multi30k-en-de", "--output", tmp_path, "--mirror", "ftp://127.0.0.1/x")
    result = transept(*words)
    assert result.returncode == 3
    assert "train.en.gz cannot be downloaded" in result.stderr
    assert "give that directory as --from:\n" in result.stderr
    assert result.stderr.count("https://raw.githubusercontent.com/multi30k") == 6


def test_unknown_corpus_is_rejected(tmp_path: Path) -> None:
    result = transept("fetch", "wmt15-en-de", "--output", tmp_path)
    assert result.returncode == 2
    assert "wmt14-en-de" in result.stderr
