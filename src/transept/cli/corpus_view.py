"""What `transept info` prints about a prepared corpus."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from transept.data import statistics
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Plan, measure
from transept.data.config import BatchConfig
from transept.data.shards import Corpus
from transept.text.symbols import load_vocabulary

BAR_WIDTH = 24
"""Characters of the longest bar of a histogram."""


def describe_corpus(corpus: Corpus, n_samples: int, seed: int) -> dict[str, Any]:
    """Counts, lengths, how well batches are filled, and some pairs as text, drawn by the seed."""
    source, target = map(load_vocabulary, (corpus.source_tokenizer, corpus.target_tokenizer))
    manifest = corpus.manifest
    sides = {
        "source": statistics.side_statistics(corpus.source_lengths, manifest.source),
        "target": statistics.side_statistics(corpus.target_lengths, manifest.target),
    }
    drawn = statistics.samples(corpus, n_samples, seed, (source, target))
    return {
        "directory": str(corpus.directory),
        "hash": corpus.hash,
        "read": manifest.read,
        "pairs": manifest.pairs,
        "dropped": manifest.dropped,
        "sides": {name: dataclasses.asdict(side) for name, side in sides.items()},
        "histogram": dataclasses.asdict(statistics.histogram(corpus)),
        "batches": _describe_batches(corpus),
        "samples": [dataclasses.asdict(sample) for sample in drawn],
    }


def _describe_batches(corpus: Corpus) -> list[dict[str, Any]]:
    """How the corpus fills batches of the paper's size, in both layouts."""
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
    console = Console(highlight=False, soft_wrap=True)
    dropped = sum(report["dropped"].values())
    console.print(f"{'corpus':10} {report['directory']}")
    console.print(f"{'hash':10} {report['hash']}")
    console.print(f"{'pairs':10} {report['pairs']:,} ({dropped:,} of {report['read']:,} dropped)")
    console.print()
    console.print(_lengths_table(report["sides"]))
    console.print()
    console.print(_histogram_table(report["histogram"]))
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
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("tokens", no_wrap=True)
    percentiles = next(iter(sides.values()))["percentiles"]
    names = ("all", "mean", "min", *(_ordinal(share) for share in percentiles), "max", "unknown")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
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


def _ordinal(share: int) -> str:
    return "median" if share == 50 else f"{share} %"


def _histogram_table(histogram: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("length", justify="right", no_wrap=True)
    edges = histogram["edges"]
    sides = {name: histogram[name] for name in ("source", "target")}
    highest = max(max(counts) for counts in sides.values())
    for name in sides:
        table.add_column(name, no_wrap=True, min_width=BAR_WIDTH)
        table.add_column("", justify="right", no_wrap=True)
    for index, edge in enumerate(edges):
        end = None if index == len(edges) - 1 else edges[index + 1] - 1
        label = f"{edge}+" if end is None else str(edge) if end == edge else f"{edge}-{end}"
        cells = []
        for counts in sides.values():
            cells += [_bar(counts[index] / highest), f"{counts[index]:,}"]
        table.add_row(label, *cells)
    return table


def _batches_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("layout", no_wrap=True)
    for name in ("batches an epoch", "source fill", "target fill", "too long"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["layout"],
            f"{row['batches_of_epoch']:,}",
            f"{row['source_fill']:.1%}",
            f"{row['target_fill']:.1%}",
            f"{row['left_out']:,}",
        )
    return table


def _bar(share: float) -> str:
    """A bar of eighths of a character."""
    eighths = round(share * BAR_WIDTH * 8)
    if share and not eighths:
        eighths = 1
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
