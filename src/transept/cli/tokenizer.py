"""`transept tokenizer`: learn a vocabulary and split text into subwords."""

import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.app import Flag
from transept.cli.lines import check_plain
from transept.cli.models import tokenizer_of
from transept.cli.outlets import ProgressBar, ignore_closed_stdout
from transept.errors import ConfigError, VocabularyError
from transept.progress import Tally
from transept.text.files import (
    STANDARD_INPUT,
    decode_line,
    describe,
    read_raw_lines,
    read_text,
    stored_size,
)
from transept.text.spans import MASKS
from transept.text.tokenizer import MANIFEST_FILE, MODEL_FILE, Kind, Tokenizer
from transept.text.training import CHARACTER_COVERAGE, train_tokenizer

TextFile = Annotated[Path, Parameter(show_default=False)]
TextFiles = Annotated[
    tuple[Path, ...],
    Parameter(
        name=["--input", "-i"],
        negative="",
        consume_multiple=1,
        json_list=False,
        show_default=False,
    ),
]
TreeFiles = Annotated[
    tuple[Path, ...],
    Parameter(negative="", consume_multiple=1, json_list=False, show_default=False),
]


def train(  # noqa: PLR0913 - one per option
    *,
    inputs: TextFiles = (),
    trees: TreeFiles = (),
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    vocab_size: int = 37_000,
    kind: Kind = "bpe",
    character_coverage: float = CHARACTER_COVERAGE,
    max_lines: int | None = None,
    masks: Flag = False,
    force: Flag = False,
) -> None:
    """Learn a vocabulary from text.

    The same text gives the same vocabulary, byte for byte.

    Args:
        inputs: UTF-8 files, one sentence per line, plain or compressed (.gz, .xz, .zst). All files
            share the vocabulary: give both languages for a joint one, as in the paper, or run this
            once per language for separate ones.
        trees: Bracketed treebanks. The vocabulary is learnt from their words.
        output: Directory to write tokenizer.model and tokenizer.json to.
        vocab_size: Number of subwords, including 4 special ones and 256 single bytes.
        kind: bpe is byte-pair encoding; unigram is a unigram language model, which is similar to
            word pieces.
        character_coverage: Share of the text's characters in the vocabulary, 0.98 to 1. Rarer
            characters are encoded as bytes, so nothing is lost.
        max_lines: Maximum number of lines to learn from. A larger input is sampled uniformly.
            Default: 10 million for bpe and 1 million for unigram.
        masks: Add symbols for text that is copied, such as URLs and numbers. Their number is part
            of --vocab-size. They are for a corpus that is prepared with --vary.
        force: Replace the tokenizer in the output directory.
    """
    if not (inputs or trees):
        raise ConfigError("no input: give --input or --trees")
    for path in inputs:
        check_plain(path, "extract the sentences of the {} to a text file first")
    _check_output(output, force)
    ignore_closed_stdout()
    started = time.monotonic()
    with ProgressBar("bytes", _announce((*inputs, *trees)), results_to_stdout=False) as bar:
        tokenizer = train_tokenizer(
            _sentences(inputs, trees, Tally(bar.watch)),
            vocab_size=vocab_size,
            kind=kind,
            character_coverage=character_coverage,
            max_lines=max_lines,
            masks=MASKS if masks else (),
            on_read=partial(_announce_learning, vocab_size),
        )
    tokenizer.save(output)
    seconds = time.monotonic() - started
    sys.stdout.write(f"{output}: {tokenizer.vocab_size:,} {kind} subwords, in {seconds:.1f} s\n")


def _announce_learning(vocab_size: int, n_used: int, n_seen: int) -> None:
    sampled = f" sampled from {n_seen:,}" if n_used < n_seen else ""
    sys.stderr.write(f"learning {vocab_size:,} subwords from {n_used:,} lines{sampled}\n")


def _announce(inputs: Sequence[Path]) -> int | None:
    """Print the input files and return their size in bytes, or None if one is a pipe."""
    from rich.filesize import decimal

    sizes = [stored_size(path) for path in inputs]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    files = describe(inputs[0]) if len(inputs) == 1 else f"{len(inputs)} files"
    size = "" if total is None else f" ({decimal(total)})"
    sys.stderr.write(f"reading {files}{size}\n")
    return total


def _sentences(files: tuple[Path, ...], trees: tuple[Path, ...], tally: Tally) -> Iterator[str]:
    from transept.tasks.parsing.pairs import clean_trees

    for path in files:
        yield from read_text(path, tally)
    for tree in clean_trees(trees, tally=tally):
        yield " ".join(tree.words)


def _check_output(output: Path, force: bool) -> None:
    """Reject an unusable output directory before the work starts."""
    if not force and any((output / name).exists() for name in (MODEL_FILE, MANIFEST_FILE)):
        raise ConfigError(f"{output}: a tokenizer already exists; --force replaces it")
    nearest = next(each for each in (output, *output.absolute().parents) if each.exists())
    if not nearest.is_dir():
        raise ConfigError(
            f"{output}: cannot be created: {nearest} is a file; choose another --output"
        )


def apply(
    file: TextFile = STANDARD_INPUT,
    /,
    *,
    tokenizer: Path,
    ids: Flag = False,
    decode: Flag = False,
) -> None:
    """Split lines into subwords, or join subwords to text.

    Each line of text becomes a line of subwords, separated by single spaces. --decode restores the
    original text, byte for byte.

    Args:
        file: UTF-8 text, plain or compressed (.gz, .xz, .zst). Default: standard input.
        tokenizer: Directory written by `transept tokenizer train`, or a model whose tokenizer to
            use: its directory, or the name of a bundled model.
        ids: Print subword ids or, with --decode, read them.
        decode: Read subwords and print the text.
    """
    vocabulary = Tokenizer.load(tokenizer_of(tokenizer))

    def cut(line: str) -> str:
        return " ".join(map(str, vocabulary.encode(line)) if ids else vocabulary.pieces(line))

    def join(line: str) -> str:
        if ids:
            return vocabulary.decode(map(_number, line.split()))
        return vocabulary.decode_pieces(line.split(" ") if line else [])

    convert = join if decode else cut
    output, at_terminal = sys.stdout.buffer, sys.stdout.isatty()
    for number, raw in enumerate(read_raw_lines(file), start=1):
        line = raw.removesuffix(b"\n")
        try:
            converted = convert(decode_line(line, file, number))
        except VocabularyError as error:
            raise VocabularyError(f"{describe(file)}, line {number}: {error}") from error
        # If the last line has no newline, its output has none either.
        output.write(converted.encode("utf-8") + raw[len(line) :])
        if at_terminal:
            output.flush()


def _number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise VocabularyError(f"{word!r} is not an id; omit --ids to read subwords") from None
