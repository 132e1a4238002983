"""What a person sees of a recipe."""

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from transept.wording import counted

if TYPE_CHECKING:
    from transept.apps.recipes.run import RecipeRun
    from transept.apps.recipes.stages.stage import Watchers
    from transept.apps.recipes.work import Done
    from transept.experiment import Experiment
    from transept.progress import Watch
    from transept.training.observers import Observer

PIPE_WIDTH = 100
PLAIN_SECONDS = 10.0
"""Between two lines of progress."""


class RecipeView:
    """A line a stage; progress of long ones on standard error."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = PIPE_WIDTH
        self._progress = Console(stderr=True, highlight=False)
        self._next = time.monotonic() + PLAIN_SECONDS

    def watchers(self) -> "Watchers":
        """Callbacks that print the progress of long stages."""
        from transept.apps.recipes.stages.stage import Watchers

        return Watchers(
            downloading=self._downloading,
            learning=lambda used, seen: self._say(f"a vocabulary from {used:,} lines", now=True),
            preparing=lambda done, total: self._say(f"{done / 1e6:,.0f} MB read"),
            training=self._training,
            translating=lambda done, total: self._say(f"{done:,} of {total:,} sentences"),
        )

    def to_do(self, stage: str) -> None:
        """Print that a stage is not done."""
        self._line(stage, Text("to do", "dim"))

    def done(self, stage: str, done: "Done") -> None:
        """Print what a stage has done."""
        took = "done before" if done.already else f"{done.seconds:,.1f} s"
        self._line(stage, Text.assemble(done.what, (f"  {took}", "dim")))

    def stopped(self) -> None:
        """Print how to resume a run that was stopped."""
        self._console.print("Stopped. Everything so far is kept; the same command resumes.")

    def scores(self, run: "RecipeRun") -> None:
        """Every test set by every convention."""
        record = run.records.read("score")
        assert record is not None
        for name, report in record["results"]["tests"].items():
            self._console.print(
                Text(f"\n{name}, {counted(report['sentences'], 'sentence')}", "bold")
            )
            for row in (*report["systems"][0]["scores"], *report["perplexities"]):
                convention = row["convention"]
                line = f"  {convention['name']:32} {row['value']:6.2f}  "
                signature = (convention["signature"], "dim")
                self._console.print(Text.assemble(line, signature), soft_wrap=True)

    def _training(self, experiment: "Experiment") -> "list[Observer]":
        from transept.cli.training_view import view_for

        return [view_for(self._progress, experiment.training.max_steps)]

    def _downloading(self, name: str) -> "Watch":
        return lambda done, total: self._say(f"{name}: {done / 1e6:,.0f} MB")

    def _line(self, name: str, what: Text) -> None:
        line = Table.grid(padding=(0, 1))
        line.add_column(width=8, style="bold")
        line.add_column()
        line.add_row(name, what)
        self._console.print(line)

    def _say(self, line: str, *, now: bool = False) -> None:
        """A line of progress, every few seconds."""
        if now or time.monotonic() >= self._next:
            self._progress.print(line, markup=False, soft_wrap=True)
            self._next = time.monotonic() + PLAIN_SECONDS
