"""`transept evalb`: labelled bracketing F1 of parse trees."""

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.app import complain


def evalb(
    gold: Path,
    predicted: Path,
    *,
    params: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Score parse trees by labelled bracketing F1.

    Both files have one tree per line, in brackets. `transept data clean` writes a treebank in this
    form. Brackets are counted as evalb does, which leaves out sentences whose trees do not fit. A
    second score leaves out none.

    Args:
        gold: The trees of the treebank.
        predicted: The trees to score.
        params: A parameter file of evalb. Default: the parameters of COLLINS.prm.
        as_json: Print one JSON object instead of tables.
    """
    from rich.console import Console

    from transept.apps.parse.report import describe_report, show_report, warnings
    from transept.evaluation.evalb.parameters import COLLINS, read_parameters
    from transept.evaluation.evalb.report import evaluate_parses
    from transept.evaluation.evalb.suspicions import suspect_roots
    from transept.evaluation.reading import read_aligned

    parameters = COLLINS if params is None else read_parameters(params)
    cure = ". Trees over several lines: `transept data clean` writes them one per line"
    gold_lines, predicted_lines = read_aligned([gold, predicted], cure)
    report = evaluate_parses(gold_lines, predicted_lines, parameters)
    names = [str(gold), str(predicted)]
    if as_json:
        sys.stdout.write(json.dumps(describe_report(report, *names)) + "\n")
    else:
        show_report(Console(highlight=False, soft_wrap=True, markup=False), report, *names)
    roots = suspect_roots(gold_lines, predicted_lines, parameters)
    for warning in (*warnings(report, names[0]), *([roots] if roots else [])):
        complain(f"warning: {warning}")
