"""The directory that a recipe, or a demo, is worked out in. What is done is not done again.

vocabulary/   the tokenizer
data/         corpora as ids
run/          the training: config, metrics, checkpoints, and the average of the last
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from transept import assembly
from transept.api.models import load
from transept.api.transducer import Transducer
from transept.checkpoint import CHECKPOINTS, Bundle, Checkpoints
from transept.data.cleaning import Cleaning
from transept.data.preparation.formats import LinePair
from transept.data.preparation.prepare import Preparation, prepare
from transept.data.shards import MANIFEST, Manifest
from transept.errors import CheckpointError
from transept.experiment import Experiment
from transept.progress import Watch, no_progress
from transept.runtime.distributed import ALONE, World
from transept.text.tokenizer import MANIFEST_FILE, Tokenizer
from transept.training.observers import Observer
from transept.training.trainer import Outcome

ROUNDING = 0.01
"""Seconds that the sum of several commands' times may be wrong by."""


class Done(NamedTuple):
    """A stage that is done, in words."""

    what: str
    already: bool
    """Whether it was done before."""
    seconds: float = 0.0
    """What it took."""


class Trained(NamedTuple):
    """How far a training has come."""

    step: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """What the stages of every experiment have in common, in their order."""

    directory: Path

    # --- from text to ids ------------------------------------------------------------------------

    def learn_vocabulary(self, learn: Callable[[], Tokenizer]) -> Done:
        """Learn a joint vocabulary, unless there is one."""
        already = (self.vocabulary / MANIFEST_FILE).exists()
        if not already:
            learn().save(self.vocabulary)
        size = Tokenizer.load(self.vocabulary).vocab_size
        return Done(f"{size:,} pieces, one vocabulary for both languages", already)

    def is_prepared(self, name: str) -> bool:
        """Whether a corpus is there."""
        return (self.corpus(name) / MANIFEST).exists()

    def prepare(
        self,
        name: str,
        pairs: Iterable[tuple[Path, Path]],
        cleaning: Cleaning | None = None,
        watch: Watch = no_progress,
    ) -> Manifest:
        """Turn files into ids, or finish what an earlier call has begun."""
        job = Preparation(
            inputs=tuple(LinePair(*pair) for pair in pairs),
            tokenizer=self.vocabulary,
            output=self.corpus(name),
            cleaning=cleaning or Cleaning(),
        )
        return prepare(job, watch=watch)

    # --- training --------------------------------------------------------------------------------

    @property
    def trained(self) -> Trained:
        """The steps that were trained, and the seconds they took."""
        state = self.state
        return Trained(0, 0.0) if state is None else Trained(state["step"], state["seconds"])

    @property
    def state(self) -> dict[str, Any] | None:
        """How far the newest checkpoint is; None where there is none."""
        return _newest_state(self._checkpoints, tuple(self._checkpoints.steps()))

    def is_trained(self, experiment: Experiment, minutes: float | None) -> bool:
        """Whether the last step is done, or the time is over."""
        step, seconds = self.trained
        over = minutes is not None and seconds >= 60 * minutes - ROUNDING
        return step >= experiment.training.max_steps or over

    def train(
        self,
        experiment: Experiment,
        minutes: float | None,
        observers: Sequence[Observer],
        world: World = ALONE,
    ) -> Outcome:
        """Train from where an earlier call stopped, for so many minutes more."""
        return assembly.train(
            experiment,
            self.training,
            minutes=minutes,
            # The plan's file in the work directory refuses another experiment (`claim`). What may
            # still differ here is allowed: paths, on another machine, and steps, with more time.
            allow_change=True,
            observers=observers,
            world=world,
        )

    def average(self, last: int, since: float = 0.0) -> Done:
        """Average the last checkpoints, section 6.1; as many as there are."""
        steps, already = self.last_steps(last, since), self.is_averaged(last, since)
        if not already:
            bundles = [self._checkpoint(step) for step in steps]
            assembly.write_average(bundles, self.model(last), replace=True)
        return Done(mean_of(steps), already)

    def is_averaged(self, last: int, since: float = 0.0) -> bool:
        """Whether the average of the last checkpoints is there."""
        return averaged_steps(self.model(last)) == self.last_steps(last, since)

    def last_steps(self, last: int, since: float = 0.0) -> list[int]:
        """The steps of the last checkpoints at regular intervals, from some second of training."""
        return self._checkpoints.regular_steps(since)[-last:]

    def _checkpoint(self, step: int) -> Bundle:
        """A checkpoint to average. A damaged one is not passed over: the mean would be another."""
        try:
            return self._checkpoints.open(step)
        except CheckpointError as error:
            raise CheckpointError(
                f"{error}. Bring it back from a copy; or remove {self._checkpoints.path(step)} "
                "to average the others"
            ) from error

    def transducer(self, last: int) -> Transducer:
        """The averaged model."""
        return load(self.model(last))

    # --- where things lie ------------------------------------------------------------------------

    @property
    def vocabulary(self) -> Path:
        """The tokenizer."""
        return self.directory / "vocabulary"

    def corpus(self, name: str) -> Path:
        """A prepared corpus."""
        return self.directory / "data" / name

    @property
    def training(self) -> Path:
        """The run: what `transept train` calls --output."""
        return self.directory / "run"

    def model(self, last: int) -> Path:
        """The averaged model."""
        return self.training / f"average-{last}"

    @property
    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self.training / CHECKPOINTS)


@lru_cache(maxsize=1)
def _newest_state(checkpoints: Checkpoints, steps: tuple[int, ...]) -> dict[str, Any] | None:
    """The newest checkpoint's state, cached until `steps` change: verifying reads gigabytes."""
    newest = checkpoints.newest()
    return None if newest is None else newest.state()


def mean_of(steps: Sequence[int]) -> str:
    """What an average is, in words."""
    if len(steps) == 1:
        return f"the weights at step {steps[0]:,}"
    return f"the mean of the weights at {len(steps)} steps, {steps[0]:,} to {steps[-1]:,}"


def averaged_steps(model: Path) -> list[int] | None:
    """The steps that a model is the average of; None if it is no average."""
    try:
        steps: list[int] | None = Bundle.open(model).about.get("averaged_steps")
    except CheckpointError:
        return None
    return steps
