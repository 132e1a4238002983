"""What `transept data` shows: progress while it works, a report when it is done."""

import itertools
import sys
import time
from collections.abc import Callable, Mapping
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

from transept.cli.app import complain
from transept.data.cleaning import BAD, Reason
from transept.data.fetching.datasets import Dataset
from transept.data.fetching.fetch import DOWNLOADS, Fetched
from transept.data.shards import DROPPED, Manifest
from transept.progress import Watch

PLAIN_SECONDS = 10.0
"""How often a line is written where there is no terminal to draw a bar on."""
MOST_BAD_LINES = 10
MUCH_LOST = 0.5
"""Share of dropped pairs above which a warning is due."""
MUCH_FAULTY = 0.1
"""The same for lines that cannot be read: there should be next to none."""
_QUESTIONS = {
    Reason.ENCODING: "Are the files in another encoding? `iconv -f cp1252 -t utf-8` converts one",
    Reason.MALFORMED: "Do the options of the input, such as --columns or --keys, fit these files?",
    Reason.EMPTY: "Are these the right files and columns?",
    Reason.LONG: "Is there one sentence a line? Does the tokenizer fit? --max-tokens is the limit",
    Reason.RATIO: "Are the two sides translations, line by line? --max-ratio is the limit",
    Reason.DUPLICATE: "Are files named twice? --no-drop-duplicates keeps such pairs",
}
"""What to ask oneself if most pairs were dropped for this reason."""


class _View:
    """A live line on a terminal; a plain line now and then in a log."""

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

    def _say(self, line: Callable[[], str], *, now: bool = False) -> None:
        """Write a plain line if one is due and there is no bar."""
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
            self._say(lambda: f"{done / 1e6:,.0f} MB read{share}")


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
        """Show how far the download of one file is."""
        task = self._progress.add_task(name, total=None)
        self._say(lambda: name, now=True)

        def show(done: int, total: int | None) -> None:
            share = f" of {total / 1e6:,.0f}" if total else ""
            self._progress.update(task, completed=done, total=total)
            self._say(lambda: f"{name}: {done / 1e6:,.0f}{share} MB")

        return show


# --- reports ---------------------------------------------------------------------------------


def show_prepared(manifest: Manifest, output: Path, seconds: float | None) -> None:
    """Print what was kept and dropped. `seconds` is None if the corpus existed before."""
    console = _console()
    if seconds is None:
        console.print(f"{output} is already prepared; nothing to do")
    speed = "" if seconds is None else f" in {seconds:,.1f} s"
    console.print(f"{'corpus':10} {output}, hash {manifest.hash[:16]}")
    console.print(f"{'read':10} {manifest.read:,} pairs{speed}")
    console.print(f"{'kept':10} {manifest.pairs:,} ({manifest.pairs / manifest.read:.2%})")
    for name, side in (("source", manifest.source), ("target", manifest.target)):
        mean = side.tokens / manifest.pairs
        unknown = f"{side.unknown:,} unknown"
        console.print(f"{name:10} {side.tokens:,} tokens, {mean:.1f} a sentence, {unknown}")
    if manifest.dropped:
        console.print()
        console.print(_dropped_table(manifest.dropped, manifest.read))
        console.print(f"Each dropped line is listed in {output / DROPPED}")
    _show_bad_lines(console, manifest.dropped, output / DROPPED)
    sys.stdout.flush()
    _warn_of_loss(manifest)


def _warn_of_loss(manifest: Manifest) -> None:
    """Speak up where so much was dropped that something else must be wrong."""
    lost = sum(manifest.dropped.values()) / manifest.read
    faulty = sum(manifest.dropped.get(reason, 0) for reason in BAD) / manifest.read
    if lost <= MUCH_LOST and faulty <= MUCH_FAULTY:
        return
    among = manifest.dropped if lost > MUCH_LOST else BAD
    main = Reason(max(among, key=lambda reason: manifest.dropped.get(reason, 0)))
    count = manifest.dropped[main]
    complain(
        f"warning: {lost:.2%} of the pairs were dropped, {count:,} of {manifest.read:,} because: "
        f"{main.meaning}. {_QUESTIONS[main]}"
    )


def _show_bad_lines(console: Console, dropped: Mapping[str, int], report: Path) -> None:
    """Show the first lines that could not be read."""
    total = sum(dropped.get(reason, 0) for reason in BAD)
    if not total or not report.exists():
        return
    shown = min(total, MOST_BAD_LINES)
    console.print(f"\nLines that cannot be read (the first {shown:,} of {total:,}):")
    with report.open(encoding="utf-8", errors="surrogateescape") as file:
        rows = (line.rstrip("\n").split("\t") for line in itertools.islice(file, 1, None))
        bad = (row for row in rows if row[2] in BAD)
        for path, line, reason, detail in itertools.islice(bad, shown):
            console.print(f"  {path}:{line}  {Reason(reason).meaning}: {detail}", markup=False)


def _dropped_table(dropped: Mapping[str, int], total: int) -> Table:
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    for column, justify in (("dropped", "left"), ("pairs", "right"), ("share", "right")):
        table.add_column(column, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("because")
    for reason, count in dropped.items():
        table.add_row(reason, f"{count:,}", f"{count / total:.2%}", Reason(reason).meaning)
    return table


def show_fetched(dataset: Dataset, result: Fetched) -> None:
    """What was fetched, and how far its archives can be trusted."""
    console = _console()
    console.print(f"{dataset.name:16} {dataset.title}")
    if not result.trust:
        console.print(f"{'':16} already in {result.directory}; nothing to do")
    for split, count in result.pairs.items():
        files = ", ".join(f"{split}.{language}" for language in dataset.languages)
        console.print(f"{split:16} {count:,} pairs ({files})")
    console.print(f"{'terms':16} {dataset.terms}")
    unproven = [name for name, trust in result.trust.items() if trust == "first use"]
    if unproven:
        console.print(
            f"No checksum is published for {', '.join(unproven)}: what came was taken on trust, "
            f"and its sha256 is kept in {result.directory / DOWNLOADS}"
        )


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True)
