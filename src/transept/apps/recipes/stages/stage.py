"""What the stages of a recipe have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from transept.apps.recipes.recipe import StageName
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.experiment import Experiment
from transept.progress import Watch, no_progress
from transept.training.observers import Observer


def _no_observers(experiment: Experiment) -> Sequence[Observer]:
    return ()


def _silent(name: str) -> Watch:
    return no_progress


@dataclass(frozen=True, slots=True)
class Watchers:
    """The callbacks that report progress, one for each kind of long work."""

    downloading: Callable[[str], Watch] = _silent
    learning: Callable[[int, int], None] | None = None
    preparing: Watch = no_progress
    training: Callable[[Experiment], Sequence[Observer]] = _no_observers
    """Called when training starts; the observers that it returns are closed at the end."""
    translating: Watch = no_progress


@dataclass(frozen=True)
class Stage(ABC):
    """A stage of one recipe. It only knows its own work: `pipeline.do` writes its record."""

    run: RecipeRun
    name: ClassVar[StageName]

    @abstractmethod
    def inputs(self) -> Table:
        """What the results depend on; an error if the stage before is not done."""

    @abstractmethod
    def carry_out(self, watch: Watchers) -> Table:
        """Do what is left to do; return the results, for the record.

        A stage with a clock of its own has `seconds` among them.
        """

    @abstractmethod
    def summary(self, record: Table) -> str:
        """What was done, in words."""

    def fetch(self, watch: Watchers) -> None:  # noqa: B027 - most have all they need
        """Get what the work reads. This does not count as the stage's time."""

    def is_recorded(self, inputs: Table) -> bool:
        """Whether there is a record with exactly these inputs."""
        return self.run.records.is_done(self.name, inputs)

    def is_whole(self) -> bool:
        """Whether all of its output exists; if not, it was stopped, or files were lost."""
        return True

    def is_done(self) -> bool:
        """Whether it has a record of its present inputs, and all of its output exists."""
        return self.is_recorded(self.inputs()) and self.is_whole()
