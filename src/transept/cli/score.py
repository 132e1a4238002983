"""`transept score`: the probability that a model assigns to given translations."""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from transept.api.config import Segmentation
from transept.cli.app import Flag, write_line
from transept.cli.models import ANY_MODEL, MODEL_OPTIONS, Models
from transept.cli.outlets import ProgressBar
from transept.errors import ConfigError, DataError, TooLongError
from transept.runtime.interrupt import import_torch
from transept.text.files import describe

if TYPE_CHECKING:
    from transept.api.scoring import PairScore
    from transept.api.transducer import Transducer
    from transept.evaluation.scores import Perplexity

PAIRS_AT_A_TIME = 1024
LABEL, NAME = 12, 34
"""Widths of the first columns in score reports."""


def score(
    *,
    source: Path,
    target: Path,
    perplexity: Flag = False,
    segmentation: Segmentation | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
    models: Annotated[Models, MODEL_OPTIONS] = ANY_MODEL,
) -> None:
    """Print the probability that a model assigns to given translations.

    For each pair, one line is printed: log P(target | source) (natural logarithm, without length
    penalty), a tab, and the number of target tokens including the end symbol. A text has many
    segmentations into tokens. The printed number is that of the likeliest segmentation that a beam
    search finds, so a sentence that transept translate outputs has the log-probability that it had
    there, or a higher one.

    Args:
        source: UTF-8 text, one sentence per line, plain or compressed (.gz, .xz, .zst); - is
            standard input.
        target: Its translations, line by line.
        perplexity: Print only the perplexity of all pairs, per token and per word. It is defined
            by the canonical segmentation.
        segmentation: Score the likeliest segmentation that is found, or the canonical one, which
            the tokenizer returns. The latter is about three times as fast. Default: likeliest.
        as_json: Print JSON, with each token and its log-probability.
        models: The model.
    """
    from transept.evaluation.reading import read_aligned

    if perplexity and segmentation == "likeliest":
        raise ConfigError("--perplexity needs --segmentation canonical; omit --segmentation")
    sources, targets = read_aligned([source, target])
    import_torch()
    transducer = models.load()
    if perplexity:
        with _locating_errors(source, target):
            found = perplexities(transducer, sources, targets)
        about = {"source": str(source), "target": str(target), "model": models.names}
        _print_perplexities(found, {**about, "sentences": len(sources)}, as_json)
        return
    segmentation = segmentation or "likeliest"
    with ProgressBar("pairs", len(sources), results_to_stdout=True) as bar:
        for start in range(0, len(sources), PAIRS_AT_A_TIME):
            some = slice(start, start + PAIRS_AT_A_TIME)
            with _locating_errors(source, target, start):
                watch = partial(bar.share, len(sources[some]))
                scores = transducer.score(
                    sources[some], targets[some], watch, segmentation=segmentation
                )
            _print_scores(scores, as_json)
            bar.advance(len(scores))


def _print_scores(scores: "Sequence[PairScore]", as_json: bool) -> None:
    for pair in scores:
        if as_json:
            write_line(json.dumps(dataclasses.asdict(pair), ensure_ascii=False))
        else:
            write_line(f"{pair.log_probability:.6f}\t{len(pair.tokens)}")
    sys.stdout.buffer.flush()


@contextmanager
def _locating_errors(source: Path, target: Path, start: int = 0) -> Iterator[None]:
    """Add files and line to the error for a pair that is too long."""
    try:
        yield
    except TooLongError as error:
        place = f"{describe(source)} and {describe(target)}, line {start + error.number}"
        raise DataError(f"{place}: {error.what}; remove that line from both") from error


# --- perplexity ------------------------------------------------------------------------------


def perplexities(
    transducer: "Transducer", sources: Sequence[str], targets: Sequence[str]
) -> "tuple[Perplexity, Perplexity]":
    """The perplexity per token and per word, with a progress bar."""
    from transept.api.perplexity import measure_perplexities

    with ProgressBar("perplexity", len(sources), results_to_stdout=False) as bar:
        watch = partial(bar.share, len(sources))
        return measure_perplexities(transducer, sources, targets, watch)


def _print_perplexities(
    found: "Sequence[Perplexity]", about: dict[str, Any], as_json: bool
) -> None:
    if as_json:
        listed = [dataclasses.asdict(one) for one in found]
        sys.stdout.write(json.dumps({**about, "perplexities": listed}) + "\n")
        return
    console = report_console()
    console.print(f"{'target':{LABEL}} {about['target']}, {about['sentences']:,} sentences")
    for label in ("source", "model"):
        console.print(f"{label:{LABEL}} {about[label]}")
    console.print()
    show_perplexities(console, found)
    console.print("Perplexity: exp of the mean −log p of the target, without label smoothing.")


def report_console() -> Console:
    """A console that does not wrap, highlight or interpret its output."""
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def show_perplexities(console: Console, perplexities: "Sequence[Perplexity]") -> None:
    """Print one row per perplexity, followed by its signature."""
    for one in perplexities:
        unit = one.convention.name.rpartition(" ")[2]
        counted = f"over {one.units:,} {unit}s, including one end symbol per sentence"
        console.print(f"{one.convention.name:{NAME}}{one.value:7.2f}   {counted}")
        console.print(f"  {one.convention.signature}", style="dim")
    console.print()
