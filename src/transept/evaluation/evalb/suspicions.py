"""Trees that look as if they were not meant to be compared as they are."""

import re
from collections.abc import Sequence
from typing import Final

from transept.evaluation.evalb.parameters import Parameters
from transept.evaluation.suspicions import FEW, MANY
from transept.text.trees import ROOTS

_FIRST_LABEL: Final = re.compile(r"\s*\(([^\s()]*)", re.ASCII)


def suspect_roots(gold: Sequence[str], predicted: Sequence[str], parameters: Parameters) -> str:
    """What is wrong with a root that only one side has; nothing if there is no such root.

    evalb counts it like any other bracket, unless the parameters delete its label. So one that is
    there by the custom of a treebank costs a bracket in every sentence.
    """
    theirs, ours = (_share(lines, parameters) for lines in (gold, predicted))
    which, effect = ("gold", "missed") if theirs > ours else ("predicted", "wrong")
    if max(theirs, ours) <= MANY or min(theirs, ours) >= FEW:
        return ""
    return (
        f"only the {which} trees have a root without a label, or with one such as ROOT, around "
        f"them: it counts as {effect} in every sentence; `transept data clean` removes it"
    )


def _share(lines: Sequence[str], parameters: Parameters) -> float:
    """Of the lines with a tree, the share whose first bracket is such a root, and counts."""
    labels = [found[1] for line in lines if (found := _FIRST_LABEL.match(line))]
    roots = sum(label in ROOTS and not parameters.deletes_bracket(label) for label in labels)
    return roots / len(labels) if labels else 0.0
