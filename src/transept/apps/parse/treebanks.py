"""`transept data clean`: treebanks in, trees out, one per line."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.app import write_line


def clean(*trees: Annotated[Path, Parameter(required=True)]) -> None:
    """Print a treebank's trees as a parser learns them, one a line.

    Traces, function labels, indices, and a root without a label are left out. `transept data
    prepare` and `transept parse --trees` do that themselves when they read trees. `transept
    evalb` does not, and wants one sentence a line, so it needs the trees that are
    printed here: `transept data clean test.mrg > test.clean`.

    Args:
        trees: Treebanks in brackets, a tree on a line or over several.
    """
    from transept.tasks.parsing.pairs import clean_trees

    for tree in clean_trees(trees):
        write_line(str(tree))
