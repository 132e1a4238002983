"""Who is told how far the stages are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transept.api.config import Watch
from transept.data.fetching.download import Watcher as Downloading
from transept.data.preparation.prepare import Watcher as Preparing
from transept.experiment import Experiment
from transept.text.training import LineCount
from transept.training.observers import Observer


def nobody(experiment: Experiment) -> Sequence[Observer]:
    """No observer of a training."""
    return ()


@dataclass(frozen=True, slots=True)
class Watchers:
    """One for each kind of work that takes long."""

    downloading: Downloading | None = None
    learning: LineCount | None = None
    preparing: Preparing | None = None
    training: Callable[[Experiment], Sequence[Observer]] = nobody
    """Called when a training begins; the observers that it returns are closed at the end."""
    translating: Watch | None = None
