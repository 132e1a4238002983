"""`transept data`: fetch and make corpora.

The modules that do the work are imported when a command runs: `--help` waits for none of them.
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
from transept.cli.outlets import ProgressBar, outlive_readers
from transept.data.cleaning import Cleaning
from transept.data.fetching.datasets import DATASETS, DatasetName
from transept.errors import ConfigError, DataError, StoppedError
from transept.runtime.interrupt import terminable

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
    """Where the text comes from."""

    source: Files = ()
    """Text files, one sentence per line; .gz, .xz and .zst are read too."""
    target: Files = ()
    """Their translations: the same number of files, each with the same number of lines."""
    tsv: Files = ()
    """Files of tab-separated columns; - is standard input."""
    jsonl: Files = ()
    """Files of one JSON object per line; - is standard input."""
    tmx: Files = ()
    """Translation memories."""
    trees: Files = ()
    """Treebanks in brackets, to learn parsing from: words are the source, symbols the target.
    Without --target-tokenizer, the vocabulary of symbols is made from these trees."""
    columns: Annotated[tuple[int, int], Parameter(negative="")] = (1, 2)
    """The columns of a TSV that hold source and target, from 1."""
    keys: Annotated[tuple[str, str], Parameter(negative="")] = ("source", "target")
    """The keys that hold source and target; `translation.en` is `en` inside `translation`."""
    languages: Annotated[tuple[str, str] | None, Parameter(negative="")] = None
    """The languages of a TMX that are source and target: `en de`."""
    tags: Annotated[Literal["XX", "kept", "named"] | None, Parameter(negative="")] = None
    """What stands for a word among the symbols of its tree. XX: the symbol XX. kept: its tag.
    named: its tag, with the word itself if that occurs at least 20 times. Default: the choice of
    the --target-tokenizer, or else XX."""

    def collected(self) -> "tuple[CorpusInput, ...]":
        """All inputs, in the order of the options above."""
        from transept.data.preparation.formats import Jsonl, LinePair, Tmx, Tsv

        for path in (*self.source, *self.target):
            check_plain(path, "give such a file to --{}")
        if len(self.source) != len(self.target):
            files = "file" if len(self.source) == 1 else "files"
            raise ConfigError(
                f"--source names {len(self.source)} {files} and --target {len(self.target)}: "
                "each needs its translation"
            )
        if self.tmx and self.languages is None:
            raise ConfigError("--tmx needs --languages: which two to take, such as `en de`")
        if min(self.columns) < 1:
            raise ConfigError("--columns count from 1")
        if self.tags is not None:
            raise ConfigError("--tags is for --trees: give trees, or leave it out")
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
        """The inputs, where they are trees."""
        from transept.tasks.parsing.treebank import Treebank
        from transept.tasks.parsing.vocabulary import tags_of

        if self.source or self.target or self.tsv or self.jsonl or self.tmx:
            raise ConfigError("--trees and other inputs do not go together: make two corpora")
        known = tags_of(symbols)
        if self.tags not in (None, str(known)):
            raise ConfigError(
                f"--tags {self.tags} does not go with this --target-tokenizer: in its trees tags "
                f"are {known}; leave one of the two out"
            )
        return tuple(Treebank(path, known) for path in self.trees)

    def symbols(self, directory: Path | None) -> "Symbols":
        """The vocabulary of the trees: that of the directory, or else one made from these trees."""
        from transept.tasks.parsing.leaves import COMMON
        from transept.tasks.parsing.vocabulary import treebank_vocabulary
        from transept.text.symbols import Symbols

        if directory is not None:
            return Symbols.load(directory)
        if _standard(self.trees[0]) == Path("-"):
            raise ConfigError("--trees are read twice: give files, or a --target-tokenizer")
        return treebank_vocabulary(self.trees, self.tags or "XX", COMMON)


NO_INPUTS, USUAL_CLEANING = Inputs(), Cleaning()
INPUT_OPTIONS = Parameter(name="*", group=Group("Input", sort_key=1))
CLEANING_OPTIONS = Parameter(name="*", group=Group("Cleaning", sort_key=2))


def prepare(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    tokenizer: Path,
    target_tokenizer: Path | None = None,
    inputs: Annotated[Inputs, INPUT_OPTIONS] = NO_INPUTS,
    cleaning: Annotated[Cleaning, CLEANING_OPTIONS] = USUAL_CLEANING,
    shortlist: Path | None = None,
    workers: int | None = None,
    restart: Flag = False,
) -> None:
    """Turn parallel text, or treebanks, into a corpus to train on.

    It can be stopped at any time, and the same command resumes it.

    Args:
        output: The directory to make.
        tokenizer: The directory of the tokenizer, or a model, whose tokenizer is then used: its
            directory, or the name of a shipped one.
        target_tokenizer: Another tokenizer for the target side. If a corpus of trees already
            exists, a development set or a further corpus of trees needs the one of that corpus:
            its directory `target_tokenizer`.
        inputs: Where the text comes from.
        cleaning: What to drop.
        shortlist: Also learn which target tokens go with each source token, and write this file,
            for `transept translate --shortlist`. Of a finished corpus, only this is done.
        workers: The number of processes that tokenize. Default: one per core.
        restart: Delete the output of an earlier run first.
    """
    from transept.cli.data_views import PrepareView, show_prepared
    from transept.data.preparation import prepare as preparing
    from transept.data.preparation.journal import partial_directory
    from transept.data.shards import MANIFEST

    outlive_readers()
    if workers is not None and workers < 0:
        raise ConfigError("--workers must be at least 0")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError("data prepare runs in one process: start it without torchrun")
    if target_tokenizer is not None:
        target_tokenizer = tokenizer_of(target_tokenizer, "target")
    job = _job(inputs, tokenizer_of(tokenizer), target_tokenizer, output, cleaning)
    with terminable(), _resumable(output, restart):
        begin = time.monotonic()
        was_prepared = not restart and (output / MANIFEST).exists()
        if not restart and partial_directory(output).exists():
            complain(f"{output}: resuming an interrupted preparation")
        with PrepareView() as view:
            manifest = preparing.prepare(job, workers=workers, restart=restart, watch=view.watch)
    show_prepared(manifest, output, None if was_prepared else time.monotonic() - begin)
    if shortlist is not None:
        _learn_shortlist(output, manifest.pairs, shortlist)


def _learn_shortlist(corpus: Path, n_pairs: int, file: Path) -> None:
    from transept.gateway import engines

    with ProgressBar("pairs", n_pairs, results_to_stdout=False) as bar:
        engines().learn_shortlist(corpus, file, bar.watch)
    sys.stdout.write(f"{'shortlist':10} {file}\n")


def _job(
    inputs: Inputs, tokenizer: Path, target_tokenizer: Path | None, output: Path, cleaning: Cleaning
) -> "Preparation":
    """What is to be prepared. Trees are not held to --max-ratio: they are longer than sentences."""
    from transept.data.preparation.prepare import Preparation

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
            f"{output}: cannot be written ({error}); make room or choose another --output. {kept}: "
            f"{again} resumes"
        ) from error


def fetch(
    name: DatasetName,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    mirror: str | None = None,
) -> None:
    """Download a public corpus and cut it into train, dev and test.

    If a download breaks off or is stopped, the same command resumes it. Checksums are compared with
    published ones, or else with those of the first download.

    Args:
        name: The corpus.
        output: The directory to fill.
        source: A directory that already has the archives; nothing is downloaded.
        mirror: The address of a directory that has the archives under their usual names, to
            download them from there.
    """
    from transept.cli.data_views import FetchView, show_fetched
    from transept.data.fetching import fetch as fetching

    outlive_readers()
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
    """`-` for standard input: by that name, readers know that it has no size and is read once."""
    return Path("-") if path == Path("/dev/stdin") else path
