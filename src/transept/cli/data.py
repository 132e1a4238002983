"""`transept data`: download and prepare corpora.

Modules are imported when a command runs, so `--help` is fast.
"""

import dataclasses
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from transept.cli.app import Flag, complain
from transept.cli.lines import check_plain
from transept.cli.models import tokenizer_of
from transept.cli.outlets import ProgressBar, ignore_closed_stdout
from transept.data.cleaning import Cleaning
from transept.data.config import SubwordSampling
from transept.data.fetching.datasets import DATASETS, DatasetName
from transept.errors import ConfigError, DataError, StoppedError
from transept.runtime.interrupt import terminable
from transept.text.variation import Variation

if TYPE_CHECKING:
    from transept.data.preparation.formats import CorpusInput
    from transept.data.preparation.prepare import Preparation
    from transept.text.symbols import Symbols, Vocabulary

Files = Annotated[
    tuple[Path, ...],
    Parameter(consume_multiple=1, json_list=False, negative="", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The input files."""

    source: Files = ()
    """Text files, one sentence per line, plain or compressed (.gz, .xz, .zst)."""
    target: Files = ()
    """Their translations: as many files, each with the same number of lines."""
    tsv: Files = ()
    """Files of tab-separated columns; - is standard input."""
    jsonl: Files = ()
    """Files of one JSON object per line; - is standard input."""
    tmx: Files = ()
    """Translation memories."""
    trees: Files = ()
    """Bracketed treebanks, to train a parser: words are the source, symbols the target. Without
    --target-tokenizer, the vocabulary of symbols is made from these trees."""
    columns: Annotated[tuple[int, int], Parameter(negative="")] = (1, 2)
    """The source and target columns of a TSV, numbered from 1."""
    keys: Annotated[tuple[str, str], Parameter(negative="")] = ("source", "target")
    """The keys of source and target; `translation.en` is `en` inside `translation`."""
    languages: Annotated[tuple[str, str] | None, Parameter(negative="")] = None
    """The source and target languages of a TMX, or of text that is varied: `en de`."""
    tags: Annotated[Literal["XX", "kept", "named"] | None, Parameter(negative="")] = None
    """The symbol for a word in the linearized tree. XX: the symbol XX. kept: its tag. named: its
    tag, plus the word itself if it occurs at least 20 times. Default: the setting of the
    --target-tokenizer, or XX."""

    def collected(self) -> "tuple[CorpusInput, ...]":
        """All inputs, in the order of the options above."""
        from transept.data.preparation.formats import Jsonl, LinePair, Tmx, Tsv

        for path in (*self.source, *self.target):
            check_plain(path, "use --{} instead")
        if len(self.source) != len(self.target):
            files = "file" if len(self.source) == 1 else "files"
            raise ConfigError(
                f"--source has {len(self.source)} {files} and --target {len(self.target)}: "
                "each source file needs a target file"
            )
        if self.tmx and self.languages is None:
            raise ConfigError("--tmx needs --languages, such as `en de`")
        if min(self.columns) < 1:
            raise ConfigError("--columns are numbered from 1")
        if self.tags is not None:
            raise ConfigError("--tags requires --trees")
        pairs = zip(self.source, self.target, strict=True)
        inputs: tuple[CorpusInput, ...] = (
            *(LinePair(source, target) for source, target in pairs),
            *(Tsv(_standard(path), self.columns) for path in self.tsv),
            *(Jsonl(_standard(path), self.keys) for path in self.jsonl),
            *(Tmx(path, self.languages) for path in self.tmx if self.languages),
        )
        if not inputs:
            raise ConfigError(
                "no input: give --source and --target, --tsv, --jsonl, --tmx or --trees"
            )
        return inputs

    def treebanks(self, symbols: "Symbols") -> "tuple[CorpusInput, ...]":
        """The treebank inputs."""
        from transept.tasks.parsing.treebank import Treebank
        from transept.tasks.parsing.vocabulary import tags_of

        if self.source or self.target or self.tsv or self.jsonl or self.tmx:
            raise ConfigError("--trees cannot be combined with other inputs: prepare two corpora")
        known = tags_of(symbols)
        if self.tags not in (None, str(known)):
            raise ConfigError(
                f"--tags {self.tags} cannot be combined with this --target-tokenizer, which uses "
                f"{known}; omit one of them"
            )
        return tuple(Treebank(path, known) for path in self.trees)

    def symbols(self, directory: Path | None) -> "Symbols":
        """Load the vocabulary of symbols from a directory. Default: make it from these trees."""
        from transept.tasks.parsing.leaves import COMMON
        from transept.tasks.parsing.vocabulary import treebank_vocabulary
        from transept.text.symbols import Symbols

        if directory is not None:
            return Symbols.load(directory)
        if _standard(self.trees[0]) == Path("-"):
            raise ConfigError("--trees from standard input need a --target-tokenizer")
        return treebank_vocabulary(self.trees, self.tags or "XX", COMMON)


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How a preparation runs, and what else it writes."""

    workers: int | None = None
    """The number of tokenizer processes. Default: one per core."""
    restart: Flag = False
    """Delete the output of an earlier run first."""
    shortlist: Path | None = None
    """Also learn which target tokens co-occur with each source token, and write them to this file
    for `transept translate --shortlist`. If the corpus is already prepared, only the shortlist is
    written."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 0:
            raise ConfigError("--workers must be at least 0")


USUAL_EXECUTION = Execution()
NO_INPUTS, USUAL_CLEANING, NO_SAMPLING = Inputs(), Cleaning(), SubwordSampling()
INPUT_OPTIONS = Parameter(name="*", group=Group("Input", sort_key=1))
CLEANING_OPTIONS = Parameter(name="*", group=Group("Cleaning", sort_key=2))
SAMPLING_OPTIONS = Parameter(name="*", group=Group("Subword regularization", sort_key=3))
VARIATION_OPTIONS = Parameter(name="--vary", group=Group("Variation", sort_key=4))


def prepare(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    tokenizer: Path,
    target_tokenizer: Path | None = None,
    inputs: Annotated[Inputs, INPUT_OPTIONS] = NO_INPUTS,
    cleaning: Annotated[Cleaning, CLEANING_OPTIONS] = USUAL_CLEANING,
    sampling: Annotated[SubwordSampling, SAMPLING_OPTIONS] = NO_SAMPLING,
    variation: Annotated[Variation | None, VARIATION_OPTIONS] = None,
    execution: Annotated[Execution, Parameter(name="*")] = USUAL_EXECUTION,
) -> None:
    """Prepare parallel text or treebanks for training.

    It can be stopped at any time. Run the same command to resume.

    Args:
        output: The directory to create.
        tokenizer: The directory of a tokenizer, or a model whose tokenizer to use: its directory,
            or the name of a bundled model.
        target_tokenizer: Another tokenizer for the target side. For the development set of a corpus
            of trees, or a second one, give the directory `target_tokenizer` of that corpus.
        inputs: The input files.
        cleaning: Which pairs to drop.
        sampling: Random subwords, for a corpus to train on.
        variation: Random changes to the pairs, for a corpus to train on. Text that is copied in
            translation, such as a URL, becomes a symbol of the vocabulary.
        execution: How to run, and what else to write.
    """
    from transept.cli.data_views import PrepareView, show_prepared
    from transept.data.preparation import prepare as preparing
    from transept.data.preparation.journal import partial_directory
    from transept.data.shards import MANIFEST

    ignore_closed_stdout()
    restart = execution.restart
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("data prepare does not support torchrun: start it without")
    job = dataclasses.replace(
        _job(inputs, tokenizer, target_tokenizer, output, cleaning),
        sampling=sampling,
        variation=variation,
    )
    with terminable(), _resumable(output, restart):
        begin = time.monotonic()
        was_prepared = not restart and (output / MANIFEST).exists()
        if not restart and partial_directory(output).exists():
            complain(f"{output}: resuming an interrupted preparation")
        with PrepareView() as view:
            manifest = preparing.prepare(
                job, workers=execution.workers, restart=restart, watch=view.watch
            )
    show_prepared(manifest, output, None if was_prepared else time.monotonic() - begin)
    if execution.shortlist is not None:
        _learn_shortlist(output, manifest.pairs, execution.shortlist)


def _learn_shortlist(corpus: Path, n_pairs: int, file: Path) -> None:
    from transept.gateway import engines

    with ProgressBar("pairs", n_pairs, results_to_stdout=False) as bar:
        engines().learn_shortlist(corpus, file, bar.watch)
    sys.stdout.write(f"{'shortlist':10} {file}\n")


def _job(
    inputs: Inputs,
    tokenizer: Path,
    target_tokenizer: Path | None,
    output: Path,
    cleaning: Cleaning,
) -> "Preparation":
    """The preparation to run. --max-ratio is not applied to trees, which are longer than text."""
    from transept.data.preparation.prepare import Preparation

    tokenizer = tokenizer_of(tokenizer)
    if target_tokenizer is not None:
        target_tokenizer = tokenizer_of(target_tokenizer, "target")
    target: Path | Vocabulary | None = target_tokenizer
    if inputs.trees:
        target = symbols = inputs.symbols(target_tokenizer)
        collected = inputs.treebanks(symbols)
        cleaning = dataclasses.replace(cleaning, max_ratio=0)
    else:
        collected = inputs.collected()
    return Preparation(
        inputs=collected,
        tokenizer=tokenizer,
        target_tokenizer=target,
        output=output,
        cleaning=cleaning,
        languages=inputs.languages or ("", ""),
    )


@contextmanager
def _resumable(output: Path, restart: bool) -> Iterator[None]:
    """If the preparation is stopped, or the disk is full, report how to resume."""
    from transept.data.preparation.journal import partial_directory

    kept = f"Finished work is in {partial_directory(output)}"
    again = "the same command without --restart" if restart else "the same command"
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(f"stopped. {kept}; {again} resumes") from None
    except OSError as error:
        raise DataError(
            f"{output}: cannot be written ({error}); free some disk space or choose another "
            f"--output. {kept}; {again} resumes"
        ) from error


def fetch(
    name: DatasetName,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    mirror: str | None = None,
) -> None:
    """Download a public corpus and split it into train, dev and test.

    If a download is interrupted, run the same command to resume. Checksums are compared with the
    published ones or, if there are none, with those of the first download.

    Args:
        name: The corpus.
        output: The directory to write to.
        source: A directory that already has the archives. Nothing is downloaded.
        mirror: The URL of a directory that has the archives under their usual names.
    """
    from transept.cli.data_views import FetchView, show_fetched
    from transept.data.fetching import fetch as fetching

    ignore_closed_stdout()
    dataset = DATASETS[name]
    try:
        with terminable(), FetchView() as view:
            result = fetching.fetch(dataset, output, source=source, mirror=mirror, watch=view.watch)
    except KeyboardInterrupt:
        raise StoppedError(
            "stopped. Downloaded parts are kept; run the same command to resume"
        ) from None
    except OSError as error:
        raise DataError(f"{output} cannot be written: {error}") from error
    show_fetched(dataset, result)


def _standard(path: Path) -> Path:
    """Replace /dev/stdin by `-`, which readers treat as a stream that can be read only once."""
    return Path("-") if path == Path("/dev/stdin") else path
