"""`transept tokenizer`, as users call it."""

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.workshop import run

from transept.cli.app import main
from transept.data.shards import Corpus
from transept.shelf import find_model
from transept.text.tokenizer import Tokenizer

SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "ta", "vo", "si", "ber", "gen", "ung", "schö", "né"]
AWKWARD = "kalo\r\n\n  <s> ▁ <0x0A> \u2028 ⁇\n\0\t\n\nkein Ende".encode()
DAMAGED = b"\xff\xfe"

Call = Callable[..., tuple[int, bytes, str]]


def babble(n_lines: int, seed: int) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(300)]
    return "".join(" ".join(rng.choices(words, k=9)) + "\n" for _ in range(n_lines))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("corpus")
    plain, packed = directory / "text.en", directory / "text.de.gz"
    plain.write_text(babble(300, seed=1), encoding="utf-8")
    packed.write_bytes(gzip.compress(babble(300, seed=2).encode()))
    return plain, packed


@pytest.fixture(scope="module")
def vocabulary(corpus: tuple[Path, Path]) -> Path:
    directory = corpus[0].parent / "vocabulary"
    with pytest.raises(SystemExit) as left:
        main(train_words(corpus, directory))
    assert left.value.code == 0
    return directory


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes]) -> Call:
    def run(*words: str | Path) -> tuple[int, bytes, str]:
        with pytest.raises(SystemExit) as left:
            main(["tokenizer", *map(str, words)])
        out, err = capsysbinary.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, out, err.decode()

    return run


def train_words(corpus: tuple[Path, Path], output: Path, *more: str) -> list[str]:
    inputs = ["--input", *map(str, corpus)]
    return ["tokenizer", "train", *inputs, "--vocab-size", "500", "--output", str(output), *more]


def in_process(
    *words: str | Path, text: bytes = b"", setup: str = "pass"
) -> subprocess.CompletedProcess[bytes]:
    code = f"{setup}; import sys; from transept.cli.app import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "tokenizer", *map(str, words)]
    return subprocess.run(command, input=text, capture_output=True, check=False)


def test_train_prints_a_summary(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    run = in_process(*train_words(corpus, tmp_path / "new")[1:])
    assert run.returncode == 0
    assert run.stdout.decode().startswith(f"{tmp_path / 'new'}: 500 bpe subwords, in ")
    first, second = run.stderr.decode().splitlines()  # and nothing of sentencepiece's
    assert first.startswith("reading 2 files (")
    assert second == "learning 500 subwords from 600 lines"
    assert json.loads((tmp_path / "new" / "tokenizer.json").read_text())["vocab_size"] == 500


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_train_is_the_same_on_one_core(
    corpus: tuple[Path, Path], tmp_path: Path, kind: str, call: Call
) -> None:
    one_core = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("cores cannot be withheld here")
    one, all_cores = tmp_path / "one", tmp_path / "all"
    run = in_process(*train_words(corpus, one, "--kind", kind)[1:], setup=one_core)
    assert run.returncode == 0
    assert call(*train_words(corpus, all_cores, "--kind", kind)[1:])[0] == 0
    assert Tokenizer.load(one).kind == kind
    assert Tokenizer.load(one).sha256 == Tokenizer.load(all_cores).sha256


def test_train_reports_sampling(corpus: tuple[Path, Path], tmp_path: Path, call: Call) -> None:
    words = train_words(corpus, tmp_path / "new", "--max-lines", "200")
    assert "from 200 lines sampled from 600" in call(*words[1:])[2]


def test_train_replaces_only_if_forced(
    corpus: tuple[Path, Path], vocabulary: Path, call: Call
) -> None:
    code, _, complaint = call(*train_words(corpus, vocabulary)[1:])
    assert code == 2
    assert f"{vocabulary}: a tokenizer already exists; --force" in complaint
    assert call(*train_words(corpus, vocabulary, "--force")[1:])[0] == 0


@pytest.mark.parametrize(
    ("option", "value", "code", "complaint"),
    [
        ("--vocab-size", "99999", 2, "--vocab-size: 99999 is too large for this text"),
        ("--vocab-size", "many", 2, "--vocab-size"),
        ("--kind", "words", 2, "--kind"),
        ("--input", "no/such/file.gz", 3, "no/such/file.gz: cannot be read"),
        ("--input", "x.jsonl.gz", 2, "extract the sentences of the jsonl to a text file first"),
        ("--input", "x.tsv", 2, "x.tsv: is not plain text with one sentence per line"),
        ("--output", "/dev/null/x", 2, "/dev/null/x: cannot be created"),
    ],
)
def test_train_rejects_invalid_options(
    corpus: tuple[Path, Path],
    tmp_path: Path,
    call: Call,
    option: str,
    value: str,
    code: int,
    complaint: str,
) -> None:
    options = {
        "--input": str(corpus[0]),
        "--output": str(tmp_path / "new"),
        "--vocab-size": "300",
    } | {option: value}
    words = [word for pair in options.items() for word in pair]
    actual, _, message = call("train", *words)
    assert actual == code
    assert complaint in message


def test_a_training_that_fails_leaves_no_directory(
    corpus: tuple[Path, Path], tmp_path: Path, call: Call
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for output in (tmp_path / "new/deep", kept / "new", kept):
        for source, size in ((tmp_path, "300"), (corpus[0], "200000")):
            code, _, _ = call("train", "--input", source, "--output", output, "--vocab-size", size)
            assert code in (2, 3)
    assert list(tmp_path.rglob("*")) == [kept]


def test_train_names_the_line_that_is_not_utf8(tmp_path: Path, call: Call) -> None:
    (tmp_path / "text").write_bytes(b"fine\n" + DAMAGED)
    code, _, complaint = call("train", "-i", tmp_path / "text", "--output", tmp_path / "new")
    assert code == 3
    assert "text, line 2: byte 1 (0xff) is not UTF-8" in complaint


@pytest.mark.parametrize("ids", [[], ["--ids"]])
@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n"])
def test_apply_and_its_decode_are_the_identity(
    vocabulary: Path, tmp_path: Path, call: Call, ids: list[str], ending: bytes
) -> None:
    text, encoded = tmp_path / "text", tmp_path / "encoded"
    text.write_bytes(AWKWARD + ending)
    code, out, _ = call("apply", "--tokenizer", vocabulary, *ids, text)
    assert code == 0
    assert out.count(b"\n") == (AWKWARD + ending).count(b"\n")
    encoded.write_bytes(out)
    decode = ["apply", "--decode", "--tokenizer", vocabulary, *ids, encoded]
    assert call(*decode) == (0, AWKWARD + ending, "")


def test_apply_reads_standard_input(vocabulary: Path) -> None:
    encoded = in_process("apply", "--tokenizer", vocabulary, text=AWKWARD)
    assert encoded.stdout != AWKWARD
    decoded = in_process("apply", "--decode", "--tokenizer", vocabulary, text=encoded.stdout)
    assert (decoded.returncode, decoded.stdout, decoded.stderr) == (0, AWKWARD, b"")


def test_ids_are_those_of_the_pieces(vocabulary: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "text").write_text("kalo mine\n")
    tokenizer = Tokenizer.load(vocabulary)
    _, pieces, _ = call("apply", "--tokenizer", vocabulary, tmp_path / "text")
    _, ids, _ = call("apply", "--tokenizer", vocabulary, "--ids", tmp_path / "text")
    assert pieces.decode() == " ".join(tokenizer.pieces("kalo mine")) + "\n"
    assert ids.decode() == " ".join(map(str, tokenizer.encode("kalo mine"))) + "\n"


@pytest.mark.parametrize(
    ("words", "content", "complaint"),
    [
        (["apply"], b"fine\n" + DAMAGED, "line 2: byte 1 (0xff) is not UTF-8"),
        (
            ["apply", "--decode"],
            "▁\nno-piece\n".encode(),
            "line 2: 'no-piece' is not in this vocabulary",
        ),
        (["apply", "--decode"], "▁  ▁\n".encode(), "line 1: '' is not in this vocabulary"),
        (
            ["apply", "--decode", "--ids"],
            b"4\n4 500\n",
            "line 2: id 500 is not in this vocabulary of 500",
        ),
        (["apply", "--decode", "--ids"], b"4\n-1\n", "line 2: id -1 is not"),
        (["apply", "--decode", "--ids"], b"\nka\n", "line 2: 'ka' is not an id"),
    ],
)
def test_bad_input_is_reported_with_its_line(
    vocabulary: Path,
    tmp_path: Path,
    call: Call,
    words: list[str],
    content: bytes,
    complaint: str,
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    code, _, message = call(*words, "--tokenizer", vocabulary, path)
    assert code == 3
    assert f"{path}, {complaint}" in message


def test_a_missing_tokenizer_is_a_data_error(call: Call, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x\n")
    code, _, message = call("apply", tmp_path / "text", "--tokenizer", tmp_path / "none")
    assert code == 3
    assert message.startswith(f"transept: {tmp_path / 'none' / 'tokenizer.json'}: cannot be read")
    assert "transept tokenizer train" in message


@pytest.mark.parametrize("command", ["train", "apply"])
def test_help_imports_neither_torch_nor_sentencepiece(command: str) -> None:
    code = (
        "import sys; from transept.cli.app import app;"
        f"app(['tokenizer', '{command}', '--help'], result_action='return_value');"
        "sys.exit('torch' in sys.modules or 'sentencepiece' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()


def test_apply_takes_the_name_of_a_shipped_model(call: Call, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("Good morning.\n")
    code, pieces, _ = call("apply", tmp_path / "text", "--tokenizer", "en-de")
    shipped = Tokenizer.load(find_model("en-de") / "tokenizer")
    assert (code, pieces.decode().split()) == (0, shipped.pieces("Good morning."))
    (tmp_path / "pieces").write_bytes(pieces)
    code, text, _ = call("apply", "--decode", tmp_path / "pieces", "--tokenizer", "en-de")
    assert (code, text) == (0, b"Good morning.\n")


def test_prepare_takes_the_name_of_a_shipped_model_as_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("en", "de"):
        (tmp_path / f"text.{side}").write_text("Good morning.\n" * 3)
    words = ["--source", tmp_path / "text.en", "--target", tmp_path / "text.de"]
    output = tmp_path / "ids"
    tokenizer = ["--tokenizer", "en-de"]
    assert run("data", "prepare", *words, *tokenizer, "--workers", "0", "--output", output) == 0
    kept = Tokenizer.load(Corpus.open(output).source_tokenizer)
    assert kept.sha256 == Tokenizer.load(find_model("en-de") / "tokenizer").sha256
    assert run("info", output) == 0
    assert "Good morning." in capsys.readouterr().out
