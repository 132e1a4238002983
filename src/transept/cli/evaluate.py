"""`transept evaluate`: scores of translations, each with the convention it is counted by."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from transept.cli.app import complain
from transept.text.moses import Language

if TYPE_CHECKING:
    from rich.console import Console

    from transept.evaluation.scores import Comparison, Interval, Report, Score


def evaluate(
    *,
    hypothesis: Path,
    reference: Path,
    other: Path | None = None,
    target_language: Language | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", show_default=False)] = False,
) -> None:
    """Score translations by every convention at once, and compare two systems.

    Files are plain text as people write it (cased, not tokenised), one sentence a line, UTF-8;
    .gz, .xz and .zst are read too. The paper's convention is tokenised BLEU with compounds split;
    compare scores only with scores that have the same signature.

    Args:
        hypothesis: The translations to score; - is standard input.
        reference: What they should be.
        other: Another system's translations of the same sentences, to compare with.
        target_language: What both are in, for the Moses tokenizer. Unless given, what the
            reference's name ends in (`test.de`).
        as_json: Print one JSON object instead of tables.
    """
    from transept.evaluation.reading import language_of, read_aligned
    from transept.evaluation.report import System
    from transept.evaluation.report import evaluate as score

    files = [reference, hypothesis] if other is None else [reference, hypothesis, other]
    references, *outputs = read_aligned(files)
    systems = [System(str(path), lines) for path, lines in zip(files[1:], outputs, strict=True)]
    report = score(
        systems[0],
        references,
        other=systems[1] if other else None,
        language=target_language or language_of(reference),
    )
    if as_json:
        _write_json(report, reference)
    else:
        _show(report, reference)
    _warn(report)


def _write_json(report: "Report", reference: Path) -> None:
    described = {"reference": str(reference), **dataclasses.asdict(report)}
    sys.stdout.write(json.dumps(described) + "\n")


def _warn(report: "Report") -> None:
    for warning in report.warnings:
        complain(f"warning: {warning}")
    for system in report.systems:
        for warning in system.warnings:
            complain(f"warning: {system.name}: {warning}")


def _show(report: "Report", reference: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print(f"{'reference':12} {reference}, {report.sentences:,} sentences")
    for label, system in zip(("hypothesis", "other"), report.systems, strict=False):
        console.print(f"{label:12} {system.name}\n")
        console.print(f"{'':34}{'score':>7}   {'95 % interval':^16}   length ratio", style="bold")
        for score in system.scores:
            _show_score(console, score)
        console.print()
    if report.comparisons:
        title = "hypothesis − other"
        console.print(
            f"{title:34}{'points':>7}   {'95 % interval':^16}  p-value     wins", style="bold"
        )
        for comparison in report.comparisons:
            _show_comparison(console, comparison)
        console.print()
    _explain(console, report)


def _show_score(console: "Console", score: "Score") -> None:
    interval = _span(score.interval) if score.interval else ""
    ratio = f"{score.breakdown.length_ratio:.3f}" if score.breakdown else ""
    line = f"{score.convention.name:34}{score.value:7.2f}   {interval:^16}   {ratio:>12}"
    console.print(line.rstrip())
    console.print(f"  {score.convention.signature}", style="dim")


def _show_comparison(console: "Console", comparison: "Comparison") -> None:
    span = _span(comparison.interval, sign="+")
    console.print(
        f"{comparison.convention.name:34}{comparison.difference:+7.2f}   {span:^16}  "
        f"{comparison.p_value:7.3f}  {comparison.wins:7.1%}"
    )


def _span(interval: "Interval", sign: str = "") -> str:
    return f"{interval.low:{sign}.2f} to {interval.high:{sign}.2f}"


def _explain(console: "Console", report: "Report") -> None:
    """How the intervals came about, without which they mean little."""
    (interval, *_) = (score.interval for score in report.systems[0].scores if score.interval)
    drawn = f"{interval.resamples:,} resamples, seed {interval.seed}"
    if report.comparisons:
        console.print(f"Paired bootstrap, {drawn}; wins are the hypothesis's.")
    else:
        console.print(f"Intervals: bootstrap, {drawn}.")
