"""How scores of parse trees are shown: tables for people, JSON for programs."""

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from transept.evaluation.evalb.report import ParseReport, Scope

_RATES = {
    "F1": "f1",
    "recall": "recall",
    "precision": "precision",
    "complete match": "complete_match",
    "tagging accuracy": "tagging_accuracy",
    "no crossing": "no_crossing",
    "2 or less crossing": "two_or_less_crossing",
    "average crossing": "average_crossing",
}
_COUNTS = ("sentences", "valid", "errors", "skipped")


def describe_report(report: "ParseReport", gold: str, predicted: str) -> dict[str, Any]:
    """Everything, as values that JSON can hold."""
    return {"gold": gold, "predicted": predicted, **dataclasses.asdict(report)}


def show_report(console: "Console", report: "ParseReport", gold: str, predicted: str) -> None:
    """Both ways of counting beside each other, for all sentences and for the short ones."""
    console.print(f"{'gold':12} {gold}, {report.all.evalb.sentences:,} sentences")
    console.print(f"{'predicted':12} {predicted}\n")
    scopes = (report.all, report.short)
    short = f"at most {report.cutoff} words"
    console.print(f"{'':20}{'all sentences':^20}{short:^20}".rstrip(), style="bold")
    console.print(f"{'':20}" + f"{'evalb':>9}{'whole':>9}  " * 2, style="bold")
    for name, key in _RATES.items():
        console.print((f"{name:20}" + "".join(_cells(scope, key) for scope in scopes)).rstrip())
    console.print()
    for name in _COUNTS:
        numbers = (f"{getattr(scope.evalb, name):9,}{'':11}" for scope in scopes)
        console.print(f"{name:20}{''.join(numbers)}".rstrip())
    console.print(
        "\nevalb leaves errors and skipped sentences out; whole counts nothing in them as right."
    )
    console.print(report.convention.signature, style="dim")


def warnings(report: "ParseReport", gold: str) -> list[str]:
    """What a reader of the scores should know about the files."""
    found = []
    damaged = [at for at, one in enumerate(report.sentences, start=1) if one.gold_problems]
    if damaged:
        found.append(
            f"{gold}: the gold trees themselves are damaged, {len(damaged):,} of them, the first "
            f"in line {damaged[0]}: nothing can be right there; mend them"
        )
    if report.problems:
        counts = ", ".join(f"{name} ({count:,})" for name, count in report.problems.items())
        lines = ", ".join(
            str(line) for line in dict.fromkeys(at for at, _ in report.first_problems)
        )
        found.append(f"trees that do not fit: {counts}; see line {lines}")
    if report.stopped_at is not None:
        found.append(
            f"evalb itself would have stopped at line {report.stopped_at}, without any score: "
            "its column is what it says with a larger MAX_ERROR and no stray text"
        )
    return found


def _cells(scope: "Scope", key: str) -> str:
    """A row's cells of a scope; `whole` has no crossing brackets, and leaves its cell empty."""
    whole = f"{getattr(scope.whole, key):9.2f}" if hasattr(scope.whole, key) else f"{'':9}"
    return f"{getattr(scope.evalb, key):9.2f}{whole}  "
