"""`transept evalb`: labelled bracketing F1 of parse trees."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from transept.cli.app import Flag, complain

if TYPE_CHECKING:
    from transept.evaluation.parse_report import ParseReport, Scope

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


def evalb(
    gold: Path,
    predicted: Path,
    *,
    clean: Flag = False,
    params: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Score parse trees by labelled bracketing F1.

    Both files contain one tree per line, in bracket notation. Brackets are counted as in evalb,
    which skips sentences whose trees do not match. A second score counts all sentences.

    Args:
        gold: The trees of the treebank.
        predicted: The trees to score.
        clean: Read the gold file like `transept parse --trees`: trees may span several lines.
            Traces, function labels, indices, and a root without a label are removed.
        params: A parameter file of evalb. Default: the parameters of COLLINS.prm.
        as_json: Print one JSON object instead of tables.
    """
    from transept.evaluation.evalb import COLLINS, read_parameters
    from transept.evaluation.parse_report import evaluate_parses, suspect_roots

    parameters = COLLINS if params is None else read_parameters(params)
    gold_lines, predicted_lines = _read(gold, predicted, clean)
    report = evaluate_parses(gold_lines, predicted_lines, parameters)
    if as_json:
        about = {"gold": str(gold), "predicted": str(predicted)}
        sys.stdout.write(json.dumps(about | dataclasses.asdict(report)) + "\n")
    else:
        console = Console(highlight=False, soft_wrap=True, markup=False)
        show_report(console, report, str(gold), str(predicted))
    for warning in warnings(report, str(gold)):
        complain(f"warning: {warning}")
    if roots := suspect_roots(gold_lines, predicted_lines, parameters):
        complain(f"warning: {roots}{'' if clean else ' (--clean removes a gold root)'}")


def _read(gold: Path, predicted: Path, clean: bool) -> tuple[list[str], list[str]]:
    from transept.evaluation.reading import read_aligned
    from transept.tasks.parsing.pairs import clean_trees

    if clean:
        (predicted_lines,) = read_aligned([predicted])
        return [str(tree) for tree in clean_trees([gold])], predicted_lines
    cure = ". If gold trees span several lines, --clean reads them"
    gold_lines, predicted_lines = read_aligned([gold, predicted], cure)
    return gold_lines, predicted_lines


def show_report(console: Console, report: "ParseReport", gold: str, predicted: str) -> None:
    """Print both scores side by side, for all sentences and for short ones."""
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
    console.print("\nevalb omits errors and skipped sentences; whole counts them as wrong.")
    console.print(report.convention.signature, style="dim")


def _cells(scope: "Scope", key: str) -> str:
    """The cells of a row. `whole` has no crossing brackets, so its cell may be empty."""
    whole = f"{getattr(scope.whole, key):9.2f}" if hasattr(scope.whole, key) else f"{'':9}"
    return f"{getattr(scope.evalb, key):9.2f}{whole}  "


def warnings(report: "ParseReport", gold: str) -> list[str]:
    """Warnings about problems of the files."""
    found = []
    damaged = [at for at, one in enumerate(report.sentences, start=1) if one.gold_problems]
    if damaged:
        found.append(
            f"{gold}: malformed gold trees: {len(damaged):,}, the first in line {damaged[0]}; "
            "they count as wrong; fix them"
        )
    if report.problems:
        counts = ", ".join(f"{name} ({count:,})" for name, count in report.problems.items())
        lines = ", ".join(
            str(line) for line in dict.fromkeys(at for at, _ in report.first_problems)
        )
        found.append(f"trees that do not match: {counts}; see line {lines}")
    if report.stopped_at is not None:
        found.append(
            f"evalb itself would have stopped at line {report.stopped_at} without a score; "
            "its column assumes a larger MAX_ERROR and no stray text"
        )
    return found
