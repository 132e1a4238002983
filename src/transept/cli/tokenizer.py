"""`transept tokenizer`: learn a vocabulary, and cut text into its pieces."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from transept.cli.app import Flag
from transept.cli.lines import check_plain
from transept.cli.models import tokenizer_of
from transept.cli.outlets import outlive_readers
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
TokenizerDirectory = Annotated[Path, Parameter(name="--tokenizer")]


def train(
    *,
    inputs: TextFiles = (),
    trees: TreeFiles = (),
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    vocab_size: int = 37_000,
    kind: Kind = "bpe",
    character_coverage: float = CHARACTER_COVERAGE,
    max_lines: int | None = None,
    force: Flag = False,
) -> None:
    """Learn a vocabulary from text.

    The same text gives the same vocabulary, byte for byte.

    Args:
        inputs: UTF-8 files, one sentence a line, plain or .gz, .xz, .zst. All of them share the
            vocabulary: name both languages for a joint one, as in the paper, or run this once
            per language for separate ones.
        trees: Treebanks in brackets, to learn from the words of their trees.
        output: Directory to write tokenizer.model and tokenizer.json to.
        vocab_size: Number of pieces, among them 4 special ones and 256 for single bytes.
        kind: bpe is byte-pair encoding; unigram is a unigram language model, which is similar to
            word pieces.
        character_coverage: Share of the text's characters that get pieces of their own, 0.98 to 1;
            the rarer ones are spelt in bytes, so nothing is lost.
        max_lines: If there are more lines than this, learn from so many of them, drawn evenly;
            unless given, 10 million for bpe and 1 million for unigram.
        force: Replace the tokenizer that the output directory holds.
    """
    if not (inputs or trees):
        raise ConfigError("nothing to learn from: give --input, or --trees")
    for path in inputs:
        check_plain(path, "write the sentences of the {} to a text file first")
    outlive_readers()
    started = time.monotonic()
    with _claimed(output, force):
        with _Progress((*inputs, *trees), vocab_size) as progress:
            tokenizer = train_tokenizer(
                _sentences(inputs, trees, progress.tally),
                vocab_size=vocab_size,
                kind=kind,
                character_coverage=character_coverage,
                max_lines=max_lines,
                on_read=progress.learn,
            )
        tokenizer.save(output)
    seconds = time.monotonic() - started
    sys.stdout.write(f"{output}: {tokenizer.vocab_size:,} {kind} pieces, in {seconds:.1f} s\n")


def _sentences(files: tuple[Path, ...], trees: tuple[Path, ...], tally: Tally) -> Iterator[str]:
    from transept.tasks.parsing.pairs import clean_trees

    for path in files:
        yield from read_text(path, tally)
    for tree in clean_trees(trees, tally=tally):
        yield " ".join(tree.words)


@contextmanager
def _claimed(output: Path, force: bool) -> Iterator[None]:
    """Find out before the work, not after it, that its result cannot be kept.

    Work that fails leaves no new directory behind.
    """
    if not force and any((output / name).exists() for name in (MODEL_FILE, MANIFEST_FILE)):
        raise ConfigError(f"{output}: holds a tokenizer already; --force replaces it")
    new = [each for each in (output, *output.parents) if not each.exists()]
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{output}: the directory cannot be made ({error.strerror}); choose another --output"
        ) from error
    try:
        yield
    except BaseException:
        for each in new:
            with suppress(OSError):  # someone may have put something there meanwhile
                each.rmdir()
        raise


def encode(
    file: TextFile = STANDARD_INPUT, /, *, tokenizer: TokenizerDirectory, ids: Flag = False
) -> None:
    """Cut each line into pieces, or into their ids.

    A line of text becomes a line of pieces, with single spaces between them.

    Args:
        file: UTF-8 text, plain or .gz, .xz, .zst; standard input unless given.
        tokenizer: Directory that `transept tokenizer train` wrote, or a model, whose tokenizer is
            then used: its directory, or the name of a shipped one.
        ids: Print the ids of the pieces, which are numbers, instead.
    """
    vocabulary = Tokenizer.load(tokenizer_of(tokenizer))

    def cut(line: str) -> str:
        return " ".join(map(str, vocabulary.encode(line)) if ids else vocabulary.pieces(line))

    _line_for_line(file, cut)


def decode(
    file: TextFile = STANDARD_INPUT, /, *, tokenizer: TokenizerDirectory, ids: Flag = False
) -> None:
    """Put pieces, or their ids, together again.

    The inverse of `encode`, byte for byte.

    Args:
        file: What `transept tokenizer encode` printed; standard input unless given.
        tokenizer: The directory of the tokenizer that encoded it, or a model with that tokenizer.
        ids: The lines hold ids instead of pieces.
    """
    vocabulary = Tokenizer.load(tokenizer_of(tokenizer))

    def join(line: str) -> str:
        if ids:
            return vocabulary.decode(map(_number, line.split()))
        return vocabulary.decode_pieces(line.split(" ") if line else [])

    _line_for_line(file, join)


def _line_for_line(file: Path, convert: Callable[[str], str]) -> None:
    """Write each line of the file, converted; a last line without newline stays without."""
    output = sys.stdout.buffer
    at_terminal = sys.stdout.isatty()
    for number, raw in enumerate(read_raw_lines(file), start=1):
        line = raw.removesuffix(b"\n")
        try:
            converted = convert(decode_line(line, file, number))
        except VocabularyError as error:
            raise VocabularyError(f"{describe(file)}, line {number}: {error}") from error
        output.write(converted.encode("utf-8") + raw[len(line) :])
        if at_terminal:
            output.flush()


def _number(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise VocabularyError(f"{word!r} is not an id; without --ids, pieces are read") from None


class _Progress:
    """What a terminal shows while a vocabulary is learnt; elsewhere, a line for each stage."""

    def __init__(self, inputs: Sequence[Path], vocab_size: int) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._vocab_size = vocab_size
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._bars = Progress(
            SpinnerColumn(finished_text="✓"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        what, total = _amount(inputs)
        self._begin(what, total)
        self.tally = Tally(self._read, total)

    def __enter__(self) -> "_Progress":
        self._bars.start()
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._end()
        self._bars.stop()

    def learn(self, n_used: int, n_seen: int) -> None:
        """All of the input has been read."""
        drawn = f" drawn from {n_seen:,}" if n_used < n_seen else ""
        self._end()
        self._begin(f"learning {self._vocab_size:,} pieces from {n_used:,} lines{drawn}", None)

    def _read(self, done: int, total: int | None) -> None:
        self._bars.update(self._stage, completed=done)

    def _begin(self, what: str, total: int | None) -> None:
        self._stage = self._bars.add_task(what, total=total)
        if self._bars.disable:
            self._console.print(what, markup=False)

    def _end(self) -> None:
        """Fill the bar of this stage, whose total may have been unknown."""
        self._bars.update(self._stage, total=1, completed=1)


def _amount(inputs: Sequence[Path]) -> tuple[str, int | None]:
    """What there is to read, in words and in bytes: None if an input is a pipe."""
    from rich.filesize import decimal

    sizes = [stored_size(path) for path in inputs]
    total = None if None in sizes else sum(size for size in sizes if size is not None)
    files = describe(inputs[0]) if len(inputs) == 1 else f"{len(inputs)} files"
    return f"reading {files}" + ("" if total is None else f" ({decimal(total)})"), total
