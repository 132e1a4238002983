import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from transept.errors import ConfigError, DataError
from transept.text import training
from transept.text.tokenizer import Kind, Tokenizer
from transept.text.training import MAX_LINES, train_tokenizer

SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "ta", "vo", "si", "ber", "gen", "ung", "schö", "né"]
KINDS = get_args(Kind)


def babble(n_lines: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(300)]
    return [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(n_lines)]


def learnt(tokenizer: Tokenizer) -> list[str]:
    """The subwords that are neither special tokens nor bytes."""
    ids = range(260, tokenizer.vocab_size)
    return [tokenizer._processor.id_to_piece(index) for index in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_lines_give_the_same_bytes(kind: Kind) -> None:
    first, second = (
        train_tokenizer(iter(babble(500)), vocab_size=500, kind=kind) for _ in range(2)
    )
    assert first.sha256 == second.sha256
    assert first.vocab_size == 500


@pytest.mark.parametrize("kind", KINDS)
def test_more_lines_than_allowed_are_sampled(kind: Kind) -> None:
    counts: list[tuple[int, int]] = []

    def train(lines: list[str], max_lines: int | None) -> Tokenizer:
        return train_tokenizer(
            lines,
            vocab_size=360,
            kind=kind,
            max_lines=max_lines,
            on_read=lambda *count: counts.append(count),
        )

    lines = babble(400)
    all_of_them = train(["", *lines, ""], None)
    some, the_same = train(lines, 150), train(lines, 150)
    assert counts == [(400, 400), (150, 400), (150, 400)]
    assert some.sha256 == the_same.sha256 != all_of_them.sha256
    assert some.sha256 != train(lines[:150], None).sha256


def test_sample_covers_the_whole_text() -> None:
    lines = [letter for letter in "abcdefghij" for _ in range(1000)]
    tokenizer = train_tokenizer(lines, vocab_size=271, max_lines=200, character_coverage=1)
    assert {piece.removeprefix("▁") for piece in learnt(tokenizer)} >= set("abcdefghij")


def test_each_kind_has_a_line_limit() -> None:
    assert list(MAX_LINES) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_error_names_the_largest_possible_vocabulary(kind: Kind) -> None:
    lines = babble(100)
    with pytest.raises(ConfigError, match=r"vocab_size: 50000 .* at most \d+") as caught:
        train_tokenizer(lines, vocab_size=50_000, kind=kind)
    largest = int(str(caught.value).split("at most ")[1].split(",")[0])
    assert train_tokenizer(lines, vocab_size=largest, kind=kind).vocab_size == largest


@pytest.mark.parametrize("kind", KINDS)
def test_error_names_the_smallest_possible_vocabulary(kind: Kind) -> None:
    lines = babble(100)
    with pytest.raises(ConfigError, match=r"vocab_size: 262 .* at least \d+") as caught:
        train_tokenizer(lines, vocab_size=262, kind=kind)
    smallest = int(str(caught.value).split("at least ")[1].split(",")[0])
    assert train_tokenizer(lines, vocab_size=smallest, kind=kind).vocab_size == smallest


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_training_without_text_raises(lines: list[str]) -> None:
    with pytest.raises(DataError, match="no text"):
        train_tokenizer(lines, vocab_size=300)


@pytest.mark.parametrize("lines", [[" "], ["\t"], ["\0"], ["▅"]])
@pytest.mark.parametrize("kind", KINDS)
def test_text_without_characters_gives_only_byte_tokens(kind: Kind, lines: list[str]) -> None:
    tokenizer = train_tokenizer(lines, vocab_size=261, kind=kind)
    assert learnt(tokenizer) == ["▁"]
    assert tokenizer.decode(tokenizer.encode(" a▁▅\t\0")) == " a▁▅\t\0"


def test_invalid_settings_are_rejected_together() -> None:
    wrong: dict[str, Any] = {"vocab_size": 10, "kind": "words", "character_coverage": 0.5}
    with pytest.raises(ConfigError) as caught:
        train_tokenizer(["ka lo"], max_lines=0, **wrong)
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["vocab_size", "kind", "character_coverage", "max_lines"]


def test_error_names_the_line_of_a_lone_surrogate() -> None:
    with pytest.raises(DataError, match=r"line 2 .*U\+DCFF"):
        train_tokenizer(["ka lo", "mi \udcff"], vocab_size=300)


def test_errors_of_the_iterator_are_raised() -> None:
    def lines() -> Any:
        yield "ka lo"
        raise DataError("somewhere, line 2")

    with pytest.raises(DataError, match="somewhere, line 2"):
        train_tokenizer(lines(), vocab_size=300)


@pytest.mark.parametrize("kind", KINDS)
def test_space_has_a_token_even_if_the_text_has_none(kind: Kind) -> None:
    # Sentencepiece drops it as too rare, and a space would be decoded as the character ▁.
    lines = ["".join(babble(60, seed)).replace(" ", "") for seed in range(3)]
    tokenizer = train_tokenizer(lines, vocab_size=300, kind=kind, character_coverage=0.98)
    assert "▁" in learnt(tokenizer)
    assert tokenizer.decode(tokenizer.encode(" ka  lo ")) == " ka  lo "


@pytest.mark.parametrize("kind", KINDS)
def test_lines_with_reserved_characters_are_used(kind: Kind) -> None:
    # Sentencepiece skips lines with ▅ (U+2585) and takes ▁ for a space.
    lines = [f"zyzyx▅zyzyx▁zyzyx {line}" for line in babble(50)]
    pieces = learnt(train_tokenizer(lines, vocab_size=350, kind=kind))
    assert "zyzyx" in pieces
    assert not any("▅" in piece or "▁" in piece[1:] for piece in pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_long_lines_are_neither_dropped_nor_fatal(kind: Kind) -> None:
    # Sentencepiece skips lines of more than 4192 bytes, and a word of 2¹⁶ characters aborts it.
    rng = random.Random(0)
    word = "".join(rng.choices(SYLLABLES, k=28_000))
    assert len(word) > 2**16
    tokenizer = train_tokenizer([word, " ".join(babble(500))], vocab_size=400, kind=kind)
    assert "ung" in "".join(learnt(tokenizer))
    assert tokenizer.decode(tokenizer.encode(word)) == word


def test_unigram_training_shuffles_a_repeated_corpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A repeated run of lines costs sentencepiece time quadratic in its length.
    seen: list[bytes] = []

    def spy(lines: Iterator[bytes], *rest: Any) -> bytes:
        seen.extend(lines)
        return genuine(iter(seen), *rest)

    genuine = training._train
    monkeypatch.setattr(training, "_train", spy)
    lines = [f"{line} {number}" for number, line in enumerate(babble(600))]
    train_tokenizer([*lines, *lines], vocab_size=400, kind="unigram")
    assert sorted(seen) == sorted(line.encode() for line in 2 * lines)
    # Unshuffled, 599 pairs of neighbours would occur twice. Shuffled, about one does.
    assert len({*itertools.pairwise(seen)}) > 1190


@pytest.mark.parametrize("at", [0, 3000, 20_000])
def test_ctrl_c_stops_training_while_reading_and_learning(at: int) -> None:
    code = """
import random, signal, sys, threading
from transept.text import training

def train(lines, *rest):
    return genuine(interrupting(lines), *rest)

def interrupting(lines):
    for number, line in enumerate(lines):
        if number == at:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        yield line
    if at >= number:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

at = int(sys.argv[1])
genuine, training._train = training._train, train
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = random.Random(0)
lines = ["".join(rng.choices("abcdefghijkl    ", k=99)) for _ in range(20_000)]
try:
    training.train_tokenizer(lines, vocab_size=5000, kind="unigram")
except KeyboardInterrupt:
    print("interrupted")
"""
    words = [sys.executable, "-c", code, str(at)]
    run = subprocess.run(words, capture_output=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"interrupted\n", b"")
