"""What `transept evaluate` prints: tables in which every number has its convention beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from transept.evaluation.grid import Trial
from transept.evaluation.scores import Comparison, Interval, Perplexity, Report, Score

LABEL, NAME = 12, 34
"""Widths of the columns that everything begins with."""


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def show_report(report: Report, reference: Path, about_model: Mapping[str, Any]) -> None:
    """Scores of one system or two; of a model, also how it was searched."""
    console = _console()
    console.print(f"{'reference':{LABEL}} {reference}, {report.sentences:,} sentences")
    labels = ("model" if about_model else "hypothesis", "other")
    for label, system in zip(labels, report.systems, strict=False):
        console.print(f"{label:{LABEL}} {system.name}")
        if label == "model":
            console.print(f"{'source':{LABEL}} {about_model['source']}")
            console.print(f"{'search':{LABEL}} {_described_search(about_model['search'])}")
        console.print()
        head = f"{'':{NAME}}{'score':>7}   {'95 % interval':^16}   length ratio"
        console.print(head, style="bold")
        for score in system.scores:
            _show_score(console, score)
        console.print()
        if label == "model":
            _show_perplexities(console, report.perplexities)
    if report.comparisons:
        title = f"{labels[0]} − other"
        head = f"{title:{NAME}}{'points':>7}   {'95 % interval':^16}  p-value     wins"
        console.print(head, style="bold")
        for comparison in report.comparisons:
            _show_comparison(console, comparison)
        console.print()
    _explain(console, report, labels[0])


def show_perplexities(perplexities: Sequence[Perplexity], about: Mapping[str, Any]) -> None:
    """Perplexities and nothing else."""
    console = _console()
    _show_about(console, about)
    _show_perplexities(console, perplexities)
    console.print("Perplexity: exp of the mean −log p of the references, without label smoothing.")


def show_trials(trials: Sequence[Trial], best: Trial, about: Mapping[str, Any]) -> None:
    """A row for each setting, the best marked."""
    console = _console()
    _show_about(console, about)
    names = [name.replace("_", " ") for name in best.settings]
    heads = "".join(f"{name:>{len(name) + 2}}" for name in names)
    console.print(
        f"  {heads}{'sacreBLEU':>12}   {'95 % interval':^16}   length ratio  seconds", style="bold"
    )
    for trial in trials:
        mark, style = ("*", "bold") if trial is best else (" ", "")
        values = "".join(
            f"{value:>{len(name) + 2}g}"
            for name, value in zip(names, trial.settings.values(), strict=True)
        )
        console.print(f"{mark} {values}{_cells(trial):>12}", style=style)
    console.print(f"  {best.score.convention.signature}\n", style="dim")
    options = " ".join(
        f"--{key.replace('_', '-')} {value:g}" for key, value in best.settings.items()
    )
    console.print(f"Best: {options}")
    console.print(
        "Settings chosen on a development set are to be reported on another, the test set."
    )


def _cells(trial: Trial) -> str:
    interval = _span(trial.score.interval) if trial.score.interval else ""
    ratio = trial.score.breakdown.length_ratio if trial.score.breakdown else 0.0
    return f"{trial.score.value:12.2f}   {interval:^16}   {ratio:12.3f}  {trial.seconds:7.1f}"


def _show_about(console: Console, about: Mapping[str, Any]) -> None:
    console.print(f"{'reference':{LABEL}} {about['reference']}, {about['sentences']:,} sentences")
    for label in ("model", "source"):
        console.print(f"{label:{LABEL}} {about[label]}")
    console.print()


def _described_search(search: Mapping[str, Any]) -> str:
    return (
        f"beam size {search['beam_size']}, length penalty {search['length_penalty']:g}, "
        f"at most {search['max_length_factor']:g} × source + {search['max_length_extra']} tokens"
    )


def _show_score(console: Console, score: Score) -> None:
    interval = _span(score.interval) if score.interval else ""
    ratio = f"{score.breakdown.length_ratio:.3f}" if score.breakdown else ""
    line = f"{score.convention.name:{NAME}}{score.value:7.2f}   {interval:^16}   {ratio:>12}"
    console.print(line.rstrip())
    console.print(f"  {score.convention.signature}", style="dim")


def _show_perplexities(console: Console, perplexities: Sequence[Perplexity]) -> None:
    for one in perplexities:
        unit = one.convention.name.rpartition(" ")[2]
        counted = f"over {one.units:,} {unit}s, each sentence's end counted as one"
        console.print(f"{one.convention.name:{NAME}}{one.value:7.2f}   {counted}")
        console.print(f"  {one.convention.signature}", style="dim")
    if perplexities:
        console.print()


def _show_comparison(console: Console, comparison: Comparison) -> None:
    span = _span(comparison.interval, sign="+")
    console.print(
        f"{comparison.convention.name:{NAME}}{comparison.difference:+7.2f}   {span:^16}  "
        f"{comparison.p_value:7.3f}  {comparison.wins:7.1%}"
    )


def _span(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.2f} to {interval.high:{sign}.2f}"


def _explain(console: Console, report: Report, label: str) -> None:
    """Say how the intervals were computed."""
    (interval, *_) = (score.interval for score in report.systems[0].scores if score.interval)
    drawn = f"{interval.resamples:,} resamples, seed {interval.seed}"
    if report.comparisons:
        console.print(f"Paired bootstrap, {drawn}; wins are the {label}'s.")
    else:
        console.print(f"Intervals: bootstrap, {drawn}.")
