"""The output of `transept data` (progress and reports) and of `transept info CORPUS`."""

import dataclasses
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from transept.cli.app import complain
from transept.data import statistics
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Plan, measure
from transept.data.cleaning import BAD, Reason
from transept.data.config import BatchConfig
from transept.data.fetching.datasets import Dataset
from transept.data.fetching.fetch import DOWNLOADS, Fetched
from transept.data.shards import DROPPED, Corpus, Manifest
from transept.progress import Watch
from transept.text.symbols import load_vocabulary
from transept.wording import counted

PLAIN_SECONDS = 10.0
"""Seconds between two lines if standard error is not a terminal."""
MANY_DROPPED = 0.5
"""The share of dropped pairs above which a warning is printed."""
MANY_UNREADABLE = 0.1
"""The same for unreadable lines, which should be rare."""
_HINTS = {
    Reason.ENCODING: "Are the files in another encoding? `iconv -f cp1252 -t utf-8` converts one",
    Reason.MALFORMED: "Do options such as --columns or --keys match these files?",
    Reason.EMPTY: "Are these the right files and columns?",
    Reason.LONG: "One sentence per line? The right tokenizer? The limit is --max-tokens",
    Reason.RATIO: "Are the two sides aligned line by line? The limit is --max-ratio",
    Reason.DUPLICATE: "Are files given twice? --no-drop-duplicates keeps such pairs",
}
"""A hint for the case that most pairs were dropped for this reason."""


class _View:
    """A progress bar on a terminal; occasional plain lines in a log."""

    def __init__(self, *columns: Any) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._live = self._console.is_terminal
        self._progress = Progress(*columns, console=self._console, transient=True)
        self._next_line = time.monotonic() + PLAIN_SECONDS

    def __enter__(self) -> Self:
        if self._live:
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            self._progress.stop()

    def _print_line(self, line: Callable[[], str], *, now: bool = False) -> None:
        """Write a plain line if one is due, instead of a progress bar."""
        if not self._live and (now or time.monotonic() >= self._next_line):
            self._console.print(line(), markup=False, soft_wrap=True)
            self._next_line = time.monotonic() + PLAIN_SECONDS


class PrepareView(_View):
    """The progress of a preparation."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("preparing"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        )
        self._task = self._progress.add_task("", total=None)

    def watch(self, done: int, total: int | None) -> None:
        """Show how many bytes of the input have been read."""
        if self._live:
            self._progress.update(self._task, total=total, completed=done)
        else:
            share = f", {done / total:.0%} of the input" if total else ""
            self._print_line(lambda: f"{done / 1e6:,.0f} MB read{share}")


class FetchView(_View):
    """The progress of downloads."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(compact=True),
        )

    def watch(self, name: str) -> Watch:
        """Show the progress of one file's download."""
        task = self._progress.add_task(name, total=None)
        self._print_line(lambda: name, now=True)

        def show(done: int, total: int | None) -> None:
            share = f" of {total / 1e6:,.0f}" if total else ""
            self._progress.update(task, completed=done, total=total)
            self._print_line(lambda: f"{name}: {done / 1e6:,.0f}{share} MB")

        return show


# --- reports ---------------------------------------------------------------------------------


def show_prepared(manifest: Manifest, output: Path, seconds: float | None) -> None:
    """Print how many pairs were kept and dropped. `seconds` is None if the corpus existed."""
    console = _console()
    if seconds is None:
        console.print(f"{output} is already prepared; nothing to do")
    speed = "" if seconds is None else f" in {seconds:,.1f} s"
    console.print(f"{'corpus':10} {output}, hash {manifest.hash[:16]}")
    console.print(f"{'read':10} {manifest.read:,} pairs{speed}")
    kept, copies = manifest.pairs // manifest.copies, manifest.copies
    each = f", {counted(copies, 'sample')} of each" if manifest.settings.sampling else ""
    console.print(f"{'kept':10} {kept:,} ({kept / manifest.read:.2%}){each}")
    for name, side in (("source", manifest.source), ("target", manifest.target)):
        mean = side.tokens / manifest.pairs
        unknown = f"{side.unknown:,} unknown"
        console.print(f"{name:10} {side.tokens:,} tokens, {mean:.1f} per sentence, {unknown}")
    if manifest.dropped:
        console.print()
        console.print(_dropped_table(manifest.dropped, manifest.read))
        console.print(f"Each dropped line is listed in {output / DROPPED}")
    sys.stdout.flush()
    _warn_of_dropped_pairs(manifest)


def _warn_of_dropped_pairs(manifest: Manifest) -> None:
    """Warn if the number of dropped pairs suggests a mistake."""
    lost = sum(manifest.dropped.values()) / manifest.read
    unreadable = sum(manifest.dropped.get(reason, 0) for reason in BAD) / manifest.read
    if lost <= MANY_DROPPED and unreadable <= MANY_UNREADABLE:
        return
    among = manifest.dropped if lost > MANY_DROPPED else BAD
    main = Reason(max(among, key=lambda reason: manifest.dropped.get(reason, 0)))
    count = manifest.dropped[main]
    complain(
        f"warning: {lost:.2%} of the pairs were dropped, {count:,} of {manifest.read:,} because: "
        f"{main.meaning}. {_HINTS[main]}"
    )


def _dropped_table(dropped: Mapping[str, int], total: int) -> Table:
    table = _table("dropped", "pairs", "share")
    table.add_column("because")
    for reason, count in dropped.items():
        table.add_row(reason, f"{count:,}", f"{count / total:.2%}", Reason(reason).meaning)
    return table


def _table(first: str, *numbers: str) -> Table:
    """A table with a text column followed by number columns."""
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def show_fetched(dataset: Dataset, result: Fetched) -> None:
    """Print the downloaded files, and those without a published checksum."""
    console = _console()
    console.print(f"{dataset.name:16} {dataset.title}")
    if not result.trust:
        console.print(f"{'':16} already in {result.directory}; nothing to do")
    for split, count in result.pairs.items():
        files = ", ".join(f"{split}.{language}" for language in dataset.languages)
        console.print(f"{split:16} {count:,} pairs ({files})")
    console.print(f"{'terms':16} {dataset.terms}")
    unverified = [name for name, trust in result.trust.items() if trust == "first use"]
    if unverified:
        console.print(
            f"No checksum is published for {', '.join(unverified)}: the sha256 of this download is "
            f"stored in {result.directory / DOWNLOADS}"
        )


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)


# --- a prepared corpus -----------------------------------------------------------------------


def describe_corpus(corpus: Corpus, n_samples: int) -> dict[str, Any]:
    """Counts, lengths, batch utilization and sample pairs."""
    source, target = map(load_vocabulary, (corpus.source_tokenizer, corpus.target_tokenizer))
    manifest = corpus.manifest
    sides = {
        "source": statistics.side_statistics(corpus.source_lengths, manifest.source),
        "target": statistics.side_statistics(corpus.target_lengths, manifest.target),
    }
    drawn = statistics.samples(corpus, n_samples, 0, (source, target))
    return {
        "directory": str(corpus.directory),
        "hash": corpus.hash,
        "read": manifest.read,
        "pairs": manifest.pairs,
        "copies": manifest.copies,
        "dropped": manifest.dropped,
        "sides": {name: dataclasses.asdict(side) for name, side in sides.items()},
        "batches": _describe_batches(corpus),
        "samples": [dataclasses.asdict(sample) for sample in drawn],
    }


def _describe_batches(corpus: Corpus) -> list[dict[str, Any]]:
    """Utilization of batches of the paper's size, in both layouts."""
    longest = BatchConfig().max_length
    if not ((corpus.source_lengths <= longest) & (corpus.target_lengths <= longest)).any():
        return []
    rows = []
    for config in (BatchConfig(), BatchConfig(layout="by_length")):
        fill = measure(Plan(Mixture([corpus]), config, seed=1), windows=1)
        rows.append(
            {
                "layout": config.layout,
                "batches_of_epoch": fill.batches_of_epoch,
                "source_fill": fill.source,
                "target_fill": fill.target,
                "left_out": sum(fill.left_out),
            }
        )
    return rows


def show_corpus(report: Mapping[str, Any]) -> None:
    """Print the description of a corpus as tables."""
    console = _console()
    dropped = sum(report["dropped"].values())
    console.print(f"{'corpus':10} {report['directory']}")
    console.print(f"{'hash':10} {report['hash']}")
    copies = f", {report['copies']} samples of each" if report["copies"] > 1 else ""
    lost = f"{dropped:,} of {report['read']:,} dropped"
    console.print(f"{'pairs':10} {report['pairs']:,} ({lost}){copies}")
    console.print()
    console.print(_lengths_table(report["sides"]))
    console.print()
    if report["batches"]:
        console.print(_batches_table(report["batches"]))
        console.print()
    for sample in report["samples"]:
        for side in ("source", "target"):
            label = f"{sample['index']:,}" if side == "source" else ""
            console.print(Text.assemble((f"{label:>10} ", "dim"), sample[side]))
    sys.stdout.flush()


def _lengths_table(sides: Mapping[str, Any]) -> Table:
    shares = next(iter(sides.values()))["percentiles"]
    percentiles = ("median" if share == 50 else f"{share} %" for share in shares)
    table = _table("tokens", "all", "mean", "min", *percentiles, "max", "unknown")
    for name, side in sides.items():
        table.add_row(
            name,
            f"{side['tokens']:,}",
            f"{side['mean']:.1f}",
            str(side["shortest"]),
            *map(str, side["percentiles"].values()),
            str(side["longest"]),
            f"{side['unknown_rate']:.3%}",
        )
    return table


def _batches_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("layout", "batches per epoch", "source fill", "target fill", "too long")
    for row in rows:
        table.add_row(
            row["layout"],
            f"{row['batches_of_epoch']:,}",
            f"{row['source_fill']:.1%}",
            f"{row['target_fill']:.1%}",
            f"{row['left_out']:,}",
        )
    return table
