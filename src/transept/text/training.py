"""Trains a subword vocabulary on text.

Together with escaping (`tokenizer`), three choices make it lossless: no normalization, all spaces
kept, and a token for each byte, which spells all characters without their own token. Training is
deterministic: lines are sampled and shuffled with a fixed seed, and the number of threads, on
which sentencepiece's floating-point sums depend, is fixed too.
"""

import io
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import cast, get_args

from transept.errors import ConfigError, DataError, Problem, TranseptError
from transept.text.tokenizer import (
    BOS,
    BOS_ID,
    EOS,
    EOS_ID,
    FIRST_LEARNT,
    PAD,
    PAD_ID,
    SPACE_SYMBOL,
    UNK,
    UNK_ID,
    Kind,
    Tokenizer,
    escape,
)

MAX_LINES: dict[Kind, int] = {"bpe": 10_000_000, "unigram": 1_000_000}
"""Limits memory. BPE keeps the lines; both sides of the paper's English-German corpus fit. The
unigram model builds a suffix array of the text, about 25 bytes per character."""

CHARACTER_COVERAGE = 0.9999
"""The fraction of all characters in the text that get their own token. Web text contains thousands
of characters that occur once or twice. Bytes can spell these, which leaves more room for words."""

# Special tokens, bytes and the space: the minimum to spell any text.
_MIN_VOCAB_SIZE = FIRST_LEARNT + 1
_SEED = 2017
# sentencepiece aborts the process on a word of 2¹⁶ characters, so longer lines are split.
_MAX_LINE_BYTES = 8192
# sentencepiece's internal symbol for rare characters: it skips every line that contains one. It is
# replaced by a tab, which cannot be part of a subword either, and which sentencepiece accepts.
_RESERVED, _BOUNDARY = "\u2585", "\t"

_TOO_MANY = re.compile(r"set it to a value <= (\d+)")
_TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def train_tokenizer(
    lines: Iterable[str],
    *,
    vocab_size: int,
    kind: Kind = "bpe",
    character_coverage: float = CHARACTER_COVERAGE,
    max_lines: int | None = None,
    masks: Sequence[str] = (),
    on_read: Callable[[int, int], None] | None = None,
) -> Tokenizer:
    """Train a vocabulary of exactly `vocab_size` tokens.

    The same lines give the same bytes on any number of cores.

    Args:
        lines: The text. For a joint vocabulary, the text of both languages.
        vocab_size: Number of tokens, including the four special ones and the 256 bytes.
        kind: Byte-pair encoding or a unigram language model.
        character_coverage: Fraction of all characters that get their own token, 0.98 to 1.
        max_lines: If there are more lines, use a sample of this size, always the same one.
            Default: `MAX_LINES` of the kind.
        masks: Symbols that get their own token: `spans.MASKS`, for a model that is trained with a
            `Variation`.
        on_read: Called once after the last line was read, before training starts, with the number
            of lines used and of non-empty lines seen.
    """
    _check(vocab_size, kind, character_coverage, max_lines)
    uniform = random.Random(_SEED).random
    sample, n_seen = _sample(lines, max_lines or MAX_LINES[kind], uniform)
    if not sample:
        raise DataError("the input has no text to train a vocabulary on; check the input")
    if on_read is not None:
        on_read(len(sample), n_seen)
    if kind == "unigram":
        # A repeated run of lines, as in overlapping corpora, costs sentencepiece time quadratic in
        # its length. Shuffling breaks such runs.
        sample.sort(key=lambda _: uniform())
    return Tokenizer(
        _interruptible(
            sample, lambda lines: _train(lines, vocab_size, kind, character_coverage, masks)
        )
    )


def _check(vocab_size: int, kind: str, character_coverage: float, max_lines: int | None) -> None:
    problems = []
    if vocab_size < _MIN_VOCAB_SIZE:
        why = "4 special tokens, 256 bytes, the space"
        problems.append(
            Problem("vocab_size", f"{vocab_size} must be at least {_MIN_VOCAB_SIZE} ({why})")
        )
    if kind not in get_args(Kind):
        problems.append(Problem("kind", f"{kind!r} is not one of {', '.join(get_args(Kind))}"))
    if not 0.98 <= character_coverage <= 1:
        problems.append(Problem("character_coverage", f"{character_coverage} must be 0.98 to 1"))
    if max_lines is not None and max_lines < 1:
        problems.append(Problem("max_lines", f"{max_lines} must be at least 1"))
    if problems:
        raise ConfigError(problems)


def _sample(
    lines: Iterable[str], max_lines: int, uniform: Callable[[], float]
) -> tuple[list[bytes], int]:
    """Sample at most `max_lines` non-empty lines uniformly, by reservoir sampling."""
    sample: list[bytes] = []
    n_seen = 0
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        n_seen += 1
        if n_seen <= max_lines:
            sample.append(_prepare(line, number))
        elif (index := int(uniform() * n_seen)) < max_lines:
            sample[index] = _prepare(line, number)
    return sample, n_seen


def _prepare(line: str, number: int) -> bytes:
    """Encode a line for sentencepiece."""
    try:
        return escape(line).replace(_RESERVED, _BOUNDARY).encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"line {number} has a lone surrogate (U+{ord(error.object[error.start]):04X}), so it "
            "is not Unicode text; decode its bytes as UTF-8 without `surrogateescape`"
        ) from error


def _drain(sample: list[bytes]) -> Iterator[bytes]:
    """Yield the lines, freeing each one so that memory does not hold two copies."""
    while sample:
        line = sample.pop()
        if len(line) <= _MAX_LINE_BYTES:
            yield line
        else:
            yield from _cut(line.decode("utf-8"))


def _cut(line: str) -> Iterator[bytes]:
    """Split a long line between words, or within a word that is itself too long."""
    limit = _MAX_LINE_BYTES // 4
    start = 0
    while len(line) - start > limit:
        space = line.rfind(" ", start + 1, start + limit)
        end = space if space > 0 else start + limit
        yield line[start:end].encode("utf-8")
        start = end + (space > 0)
    yield line[start:].encode("utf-8")


def _train(
    lines: Iterator[bytes], vocab_size: int, kind: Kind, coverage: float, masks: Sequence[str]
) -> bytes:
    """Train and return the bytes of a sentencepiece model."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=lines,
            model_writer=model,
            model_type=kind,
            vocab_size=vocab_size,
            pad_id=PAD_ID,
            pad_piece=PAD,
            eos_id=EOS_ID,
            eos_piece=EOS,
            unk_id=UNK_ID,
            unk_piece=UNK,
            bos_id=BOS_ID,
            bos_piece=BOS,
            user_defined_symbols=list(masks),
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            character_coverage=coverage,
            # The space always gets a token, even if it is rare: spelt as a byte, it would not be
            # decoded to a space.
            required_chars=SPACE_SYMBOL,
            max_sentence_length=_MAX_LINE_BYTES,
            num_threads=16,
            self_test_sample_size=0,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise _explain(str(error), vocab_size) from error
    return model.getvalue()


def _explain(message: str, vocab_size: int) -> TranseptError:
    """Translate sentencepiece's message for the user."""
    if found := _TOO_MANY.search(message):
        what = f"{vocab_size} is too large for this text; use at most {found[1]}, or more text"
        return ConfigError([Problem("vocab_size", what)])
    if found := _TOO_FEW.search(message):
        what = (
            f"{vocab_size} is too small for the characters of this text; use at least {found[1]}, "
            "or a lower character coverage"
        )
        return ConfigError([Problem("vocab_size", what)])
    return DataError(f"sentencepiece cannot train a vocabulary on this text: {message}")


def _interruptible(sample: list[bytes], train: Callable[[Iterator[bytes]], bytes]) -> bytes:
    """Train in a thread. In the main thread, Ctrl-C would wait until sentencepiece is done.

    While sentencepiece reads the lines, the thread must not be abandoned: it would return to an
    interpreter that is shutting down, and the process would abort. A None instead of a line stops
    it there.
    """
    outcome: Future[bytes] = Future()
    unwanted, read = threading.Event(), threading.Event()

    def lines() -> Iterator[bytes]:
        for line in _drain(sample):
            if unwanted.is_set():
                break
            yield line
        read.set()
        if unwanted.is_set():
            yield cast(bytes, None)

    def run() -> None:
        try:
            outcome.set_result(train(lines()))
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        return outcome.result()
    except KeyboardInterrupt:
        unwanted.set()
        # Once all lines are read, it trains for long without calling Python and can be abandoned.
        # Until then, wait for it.
        thread.join(0.2 if read.is_set() else None)
        raise
