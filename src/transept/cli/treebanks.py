"""`transept data clean` and `transept data recombine`: treebanks in, trees out, one a line."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from transept.cli.app import complain, write_line
from transept.cli.progress import ProgressBar
from transept.errors import ConfigError, DataError
from transept.tasks.parsing.recombination import CHANCE

Treebank = Annotated[Path, Parameter(required=True)]


def clean(*trees: Treebank) -> None:
    """Print a treebank's trees as a parser learns them, one a line.

    Traces, function labels, indices, and a root without a label are left out. `transept data
    prepare` and `transept parse --trees` do that themselves when they read trees. `transept
    evaluate --parse` does not, and wants one sentence a line, so it needs the trees that are
    printed here: `transept data clean test.mrg > test.clean`.

    Args:
        trees: Treebanks in brackets, a tree on a line or over several.
    """
    from transept.tasks.parsing.pairs import clean_trees

    for tree in clean_trees(trees):
        write_line(str(tree))


def recombine(
    *trees: Treebank,
    copies: int = 8,
    chance: float = CHANCE,
    seed: int = 0,
) -> None:
    """Print more trees of a treebank, with constituents exchanged.

    In each new tree, some constituents are replaced by constituents of other trees that have the
    same label, stand under the same label, and are about as long. They help because a parser that
    often sees the same few trees learns them by heart. Prepare the new trees as a corpus of its
    own, which `data.train` mixes in with a weight: `transept data recombine train.mrg > more.mrg`.

    Args:
        trees: The treebanks to recombine, in brackets.
        copies: How often to try each tree; a try in which nothing was exchanged prints none.
        chance: The probability that a constituent is exchanged, if none around it is. More makes
            more trees, and less sense.
        seed: Decides what is exchanged; the same seed gives the same trees.
    """
    from transept.tasks.parsing.pairs import clean_trees
    from transept.tasks.parsing.recombination import recombined

    if copies < 1:
        raise ConfigError("--copies must be at least 1")
    if not 0 < chance <= 1:
        raise ConfigError("--chance must be more than 0, and at most 1")
    bank = [*clean_trees(trees)]
    if not bank:
        raise DataError(f"{', '.join(map(str, trees))}: there are no trees to learn from")
    n_made = 0
    with ProgressBar("trees", copies * len(bank), results_to_stdout=True) as progress:
        for tree in recombined(bank, copies, seed=seed, chance=chance):
            write_line(str(tree))
            progress.advance(1)
            n_made += 1
    complain(f"{n_made:,} further trees of {len(bank):,}")
