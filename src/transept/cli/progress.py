"""How far a command has come, on a terminal that shows nothing else."""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressBar:
    """A bar on standard error, while there is a terminal and nothing else is written to it.

    Of torchrun's workers on a machine, the first shows one.
    """

    def __init__(self, what: str, total: int | None, *, results_to_stdout: bool) -> None:
        """Begin a bar.

        Args:
            what: What is counted: `lines`.
            total: How many there are; None where that is unknown.
            results_to_stdout: Whether results go to standard output meanwhile: then there is a bar
                only if that is no terminal.
        """
        in_the_way = results_to_stdout and sys.stdout.isatty()
        is_first = os.environ.get("LOCAL_RANK", "0") == "0"
        is_seen = is_first and sys.stderr.isatty() and not in_the_way
        self._bar = _bar() if is_seen else None
        self._task = None if self._bar is None else self._bar.add_task(what, total=total)
        self._begun: float = 0

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def share(self, of: int, done: int, total: int | None) -> None:
        """Show that the share `done / total` of the next `of` is done."""
        self._show(self._begun + of * done / (total or 1))

    def advance(self, n: int) -> None:
        """Show that all of the next `n` are done."""
        self._begun += n
        self._show(self._begun)

    def _show(self, completed: float) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=completed)


def _bar() -> "Progress":
    # Imported here: where nobody sees a bar, nobody waits for it.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        MofNCompleteColumn(),
        BarColumn(bar_width=32),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
        redirect_stdout=False,  # results go there: the bar must not print them on this terminal
    )
