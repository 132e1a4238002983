"""`transept evaluate --parse`: scores of parse trees."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from transept.cli.app import Flag, complain
from transept.errors import ConfigError, DataError

if TYPE_CHECKING:
    from transept.evaluation.evalb.parameters import Parameters
    from transept.evaluation.evalb.report import ParseReport


@dataclass(frozen=True, kw_only=True)
class Parses:
    """Trees instead of translations."""

    parse: Annotated[tuple[Path, Path] | None, Parameter(negative="")] = None
    """Score trees: a file of gold trees and one of predicted trees, in brackets, one sentence a
    line. `transept data clean` writes a treebank in this form."""
    params: Path | None = None
    """A parameter file of evalb; unless given, COLLINS.prm's parameters."""
    baseline: Flag = False
    """Also show the score of trees that branch to the right everywhere."""

    def __post_init__(self) -> None:
        if self.parse is None and (self.params or self.baseline):
            raise ConfigError("--params and --baseline need --parse, the trees to score")


NO_PARSES = Parses()
PARSES = Parameter(name="*", group=Group("Trees", sort_key=3))


def score_parses(parses: Parses, as_json: bool) -> None:
    """Score one file of trees against another, and show it."""
    from rich.console import Console

    from transept.cli.parse_report import describe_report, show_report, warnings
    from transept.evaluation.evalb.parameters import COLLINS, read_parameters
    from transept.evaluation.evalb.report import evaluate_parses
    from transept.evaluation.evalb.suspicions import suspect_roots
    from transept.evaluation.reading import read_aligned

    assert parses.parse is not None
    parameters = COLLINS if parses.params is None else read_parameters(parses.params)
    cure = ". Trees over several lines: `transept data clean` writes them one a line"
    gold, predicted = read_aligned(parses.parse, cure)
    report = evaluate_parses(gold, predicted, parameters)
    beside = _baseline(parses.parse[0], gold, parameters) if parses.baseline else None
    names = [str(path) for path in parses.parse]
    if as_json:
        described = describe_report(report, *names)
        if beside is not None:
            described["baseline"] = describe_report(beside, names[0], "right-branching")
        sys.stdout.write(json.dumps(described) + "\n")
    else:
        show_report(Console(highlight=False, soft_wrap=True, markup=False), report, *names)
        if beside is not None:
            sys.stdout.write(
                f"\nright-branching trees: F1 {beside.all.whole.f1:.2f}, and "
                f"{beside.short.whole.f1:.2f} of at most {beside.cutoff} words\n"
            )
    roots = suspect_roots(gold, predicted, parameters)
    for warning in (*warnings(report, names[0]), *([roots] if roots else [])):
        complain(f"warning: {warning}")


def _baseline(path: Path, gold: Sequence[str], parameters: "Parameters") -> "ParseReport":
    from transept.evaluation.evalb.report import evaluate_parses
    from transept.tasks.parsing.baseline import baseline
    from transept.text.trees import parse_trees

    trees, lines = [], []
    for number, line in enumerate(gold, start=1):
        found = parse_trees(line, str(path), number)
        if len(found) > 1:
            raise DataError(
                f"{path}, line {number}: holds {len(found)} trees, and --baseline needs one a line"
            )
        if found:
            trees.append(found[0])
            lines.append(line)
    return evaluate_parses(lines, list(map(str, baseline(trees))), parameters)
