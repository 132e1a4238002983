"""The base class of a recipe's stages.

A stage is done if it has a record with the same inputs and all of its output exists. Otherwise it
runs, and writes its record at the end. So each stage can be stopped and resumed, and a completed
stage is skipped. If it is killed between its end and its record, the next call writes the record.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from transept.apps.recipes.recipe import StageName
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.experiment import Experiment
from transept.progress import Watch, no_progress
from transept.training.observers import Observer


def _no_part(name: str) -> None: ...


def _no_observers(experiment: Experiment) -> Sequence[Observer]:
    return ()


def _silent(name: str) -> Watch:
    return no_progress


@dataclass(frozen=True, slots=True)
class Watchers:
    """Progress callbacks, one for each kind of long work."""

    part: Callable[[str], None] = _no_part
    """Called when a part of the first stage starts: text, vocabulary, ids."""
    downloading: Callable[[str], Watch] = _silent
    learning: Callable[[int, int], None] | None = None
    preparing: Callable[[str], Watch] = _silent
    """Called with the name of a corpus. The progress is in bytes."""
    training: Callable[[Experiment], Sequence[Observer]] = _no_observers
    """Called when training starts. The returned observers are closed at the end."""
    translating: Callable[[str], Watch] = _silent
    """Called with the name of a text. The progress is in sentences."""


class Done(NamedTuple):
    """The outcome of a completed stage."""

    what: str
    already: bool
    """Whether it was done before."""
    seconds: float = 0.0
    """The duration."""


@dataclass(frozen=True)
class Stage(ABC):
    """A stage of one recipe. It implements only its own work; `do` writes its record."""

    run: RecipeRun
    name: ClassVar[StageName]

    @abstractmethod
    def inputs(self) -> Table:
        """Everything that the results depend on. Raises if the previous stage is not done."""

    @abstractmethod
    def carry_out(self, watch: Watchers) -> Table:
        """Do the remaining work and return the results for the record.

        A stage that measures its own time includes `seconds`.
        """

    @abstractmethod
    def summary(self, record: Table) -> str:
        """A one-line summary."""

    def fetch(self, watch: Watchers) -> None:  # noqa: B027 - optional
        """Get the input files. The time for this is not counted."""

    def is_recorded(self, inputs: Table) -> bool:
        """Whether there is a record with exactly these inputs."""
        record = self.run.records.read(self.name)
        return record is not None and record["inputs"] == json.loads(json.dumps(inputs))

    def is_whole(self) -> bool:
        """Whether all output exists. If not, the stage was stopped or files were lost."""
        return True

    def is_done(self) -> bool:
        """Whether the stage has a record with its current inputs, and all output exists."""
        return self.is_recorded(self.inputs()) and self.is_whole()

    def done(self, already: bool, seconds: float = 0.0) -> Done:
        """The outcome according to the record."""
        record = self.run.records.read(self.name)
        assert record is not None
        return Done(self.summary(record), already, record["results"].get("seconds", seconds))


def do(stage: Stage, watch: Watchers) -> Done | None:
    """Run and record a stage, unless it is done. None if it was stopped."""
    begin = time.monotonic()
    already = stage.is_done()
    if not already:
        stage.fetch(watch)
        _carry_out(stage, watch)
        if not stage.is_whole():
            return None
    return stage.done(already, time.monotonic() - begin)


def _carry_out(stage: Stage, watch: Watchers) -> None:
    begin = time.monotonic()
    inputs = stage.inputs()
    results = stage.carry_out(watch)
    seconds = None if "seconds" in results else time.monotonic() - begin
    stage.run.records.write(stage.name, inputs, results, seconds)
