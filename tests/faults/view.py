"""The score as a table that a person likes to read."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from tests.faults.score import Tally

SHOWN = 3
"""Cases that broke, of each kind, that are told in full."""


class View:
    """Prints each kind of fault as it is done, and the table in the end."""

    def __init__(self, seed: int, form: str) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:  # in a log, lines may be as long as they are
            self._console.width = 140
        self._seed = seed
        self._console.print(f"faults, {form} form, seed {seed}")

    def add(self, tally: Tally) -> None:
        """One kind of fault is done."""
        self._console.print(f"  {tally.name:<16} {_result(tally):<28} {tally.seconds:6.1f} s")
        for case, what in list(tally.broken.items())[:SHOWN]:
            replay = f"python -m tests.faults --seed {self._seed} --only {tally.name} --case {case}"
            told = f"    case {case}: {what}\n    again: {replay}"
            self._console.print(told, markup=False, soft_wrap=True)

    def close(self, tallies: Sequence[Tally]) -> None:
        """The whole score."""
        table = Table(title="What happened", title_justify="left", box=None, pad_edge=False)
        for heading in ("fault", "tried", "survived", "promise"):
            table.add_column(
                heading, justify="right" if heading in ("tried", "survived") else "left"
            )
        for tally in tallies:
            survived = "skipped" if tally.skipped else f"{tally.survived:,}"
            table.add_row(tally.does, f"{tally.tried:,}", survived, tally.skipped or tally.promise)
        tried, survived = (sum(getattr(t, name) for t in tallies) for name in ("tried", "survived"))
        self._console.print()
        self._console.print(table)
        self._console.print(f"{survived:,} of {tried:,} survived; seed {self._seed}")


def _result(tally: Tally) -> str:
    if tally.skipped:
        return f"skipped: {tally.skipped}"
    return f"{tally.survived:,} of {tally.tried:,} survived"
