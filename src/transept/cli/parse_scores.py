"""`transept evaluate --parse`: scores of parse trees."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from transept.cli.app import complain
from transept.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Parses:
    """Trees instead of translations."""

    parse: Annotated[tuple[Path, Path] | None, Parameter(negative="")] = None
    """Score trees: a file of gold trees and one of predicted trees, in brackets, one sentence a
    line. `transept data clean` writes a treebank in this form."""
    params: Path | None = None
    """A parameter file of evalb; unless given, COLLINS.prm's parameters."""

    def __post_init__(self) -> None:
        if self.parse is None and self.params:
            raise ConfigError("--params needs --parse, the trees to score")


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
    names = [str(path) for path in parses.parse]
    if as_json:
        sys.stdout.write(json.dumps(describe_report(report, *names)) + "\n")
    else:
        show_report(Console(highlight=False, soft_wrap=True, markup=False), report, *names)
    roots = suspect_roots(gold, predicted, parameters)
    for warning in (*warnings(report, names[0]), *([roots] if roots else [])):
        complain(f"warning: {warning}")
