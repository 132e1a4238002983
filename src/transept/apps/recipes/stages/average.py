"""The third stage: the mean of the last checkpoints, section 6.1."""

from transept.apps.recipes.records import Table
from transept.apps.recipes.stages.stage import Stage, Watchers
from transept.apps.recipes.work import mean_of
from transept.errors import CheckpointError


class Average(Stage):
    """Average as many checkpoints as the recipe says, or as there are."""

    name = "average"

    def inputs(self) -> Table:
        """The steps of the checkpoints."""
        steps = self.run.work.last_steps(self._last, self._since)
        if not steps:
            raise CheckpointError(
                f"{self.run.directory}: nothing is trained yet; begin with `train`"
            )
        return {"steps": steps}

    def carry_out(self, watch: Watchers) -> Table:
        """Write the model, unless it is there."""
        self.run.work.average(self._last, self._since)
        return {"weights": self.run.weights}

    def summary(self, record: Table) -> str:
        """Which steps, and whether they are fewer than they should be."""
        steps = record["inputs"]["steps"]
        short = self._last - len(steps)
        return mean_of(steps) + (f"; {short} fewer than the recipe averages" if short else "")

    def is_whole(self) -> bool:
        """Whether the model is there."""
        return self.run.work.is_averaged(self._last, self._since)

    @property
    def _last(self) -> int:
        return self.run.recipe.average.last

    @property
    def _since(self) -> float:
        """The seconds of training before which checkpoints are left out.

        A run that was given more time may still have those of its earlier end.
        """
        return 60 * self.run.experiment().checkpoint.after_minutes
