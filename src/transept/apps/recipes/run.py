"""A recipe in its work directory.

    recipe.toml    the recipe
    text/          the sentences of a recipe that writes its own
    vocabulary/    the tokenizer
    data/          corpora as ids
    run/           the training: config, metrics, checkpoints, and the average of the last
    tests/         the test sets, one sentence per line
    hypotheses/    their translations
    records/       what each stage stored, and how long to train
    record.json    all records together, and the training curve

After the first stage the directory holds all that the others need: it can be moved to another
machine without the text.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from transept import config
from transept.api.models import load
from transept.api.transducer import Transducer
from transept.apps.recipes.recipe import DEV, Recipe, StageName, TestSet
from transept.apps.recipes.records import Records, Table
from transept.checkpoint import CHECKPOINTS, WEIGHTS, Checkpoints
from transept.data.config import CorpusConfig
from transept.errors import Argument, ConfigError, DataError
from transept.experiment import EXECUTION_KEYS, Experiment
from transept.runtime.distributed import ALONE, World
from transept.runtime.storage import digest, make_directory, part_of, write_file
from transept.text.files import read_text
from transept.text.tokenizer import Tokenizer

FILE: Final = "recipe.toml"
RECORD: Final = "record.json"
MINUTES: Final = "minutes"
"""The record of how long to train: the last value of --minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeRun:
    """What all stages know."""

    name: str
    recipe: Recipe
    directory: Path
    data: Path | None = None
    """The directory of the text; not needed once it is prepared."""
    minutes: float | None = None
    """How long to train in total. None: until the last step."""
    system: str = "transept"
    """The toolkit whose model it is."""
    world: World = ALONE
    """The ranks that train it together. Rank 0 runs all other stages alone."""

    def begin(self, argument: str = "work") -> None:
        """Claim the directory for this recipe, of which only the `MEANS` may change later.

        Args:
            argument: The argument by which a caller chooses another directory.
        """
        path = self.directory / FILE
        if path.exists():
            means = [f"experiment.{key}" for key in EXECUTION_KEYS]
            changes = config.differences(config.load(Recipe, path), self.recipe, means)
            if changes:
                listed = "\n  ".join(changes)
                raise ConfigError(
                    f"{self.directory}: holds a recipe that began with other settings:\n"
                    f"  {listed}\nChoose another ", Argument(argument),
                )  # fmt: skip
        elif self.directory.exists() and {*self.directory.iterdir()} - {part_of(path)}:
            raise ConfigError(
                f"{self.directory}: is not empty and not a recipe's; choose another ",
                Argument(argument),
            )
        else:
            make_directory(self.directory)
            write_file(path, config.dump(self.recipe).encode())

    # --- training ----------------------------------------------------------------------------

    def given(self, minutes: float | None) -> "RecipeRun":
        """The same run with its total minutes of training: these, or else those given before.

        Args:
            minutes: Infinity: until the recipe's last step.
        """
        said = self.records.read(MINUTES)
        before = None if said is None else said["minutes"]
        if minutes is None:
            return replace(self, minutes=before)
        trained = self.state["seconds"] / 60
        if minutes != before and minutes < trained:
            raise ConfigError(
                f"{self.directory}: was trained for {trained:.3g} minutes already, and ",
                Argument("minutes"), f" {minutes:g} is less; leave it out to keep the earlier "
                "value, give more to continue, or choose another ", Argument("work"),
            )  # fmt: skip
        return replace(self, minutes=None if math.isinf(minutes) else minutes)

    def remember_minutes(self) -> None:
        """Store the minutes before training starts: a killed training leaves no record."""
        said = {"minutes": self.minutes}
        if self.records.read(MINUTES) != said:
            self.records.keep(MINUTES, said)

    def experiment(self) -> Experiment:
        """The experiment with its corpora, its vocabulary and its interval between checkpoints."""
        recipe = self.recipe.within(self.minutes)
        experiment, model = recipe.experiment, recipe.experiment.model
        if recipe.vocabulary.min_size is not None:
            model = replace(model, vocab_size=Tokenizer.load(self.vocabulary).vocab_size)
        train = tuple(
            CorpusConfig(path=self.corpus(text.name), weight=text.weight) for text in recipe.texts
        )
        data = replace(experiment.data, train=train, dev=self.corpus(DEV))
        return replace(experiment, model=model, data=data)

    @property
    def state(self) -> Table:
        """How far the newest checkpoint is: its step, its seconds of training and more."""
        return _newest_state(self.checkpoints, tuple(self.checkpoints.steps()))

    # --- paths -------------------------------------------------------------------------------

    @property
    def text(self) -> Path:
        """The sentences of a recipe that writes its own."""
        return self.directory / "text"

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

    @property
    def checkpoints(self) -> Checkpoints:
        """Those of the training."""
        return Checkpoints(self.training / CHECKPOINTS)

    @property
    def model(self) -> Path:
        """The averaged model."""
        return self.training / f"average-{self.recipe.average.last}"

    @property
    def records(self) -> Records:
        """The records of the stages."""
        return Records(self.directory / "records")

    @property
    def record(self) -> Path:
        """All records in one."""
        return self.directory / RECORD

    def sources(self, test: TestSet) -> Path:
        """The source sentences of a test set."""
        return self.directory / "tests" / f"{test.name}.{self.recipe.source_language}"

    def references(self, test: TestSet) -> Path:
        """The reference translations of a test set."""
        return self.directory / "tests" / f"{test.name}.{self.recipe.target_language}"

    def hypotheses(self, test: TestSet) -> Path:
        """The model's translations of a test set."""
        return self.directory / "hypotheses" / f"{test.name}.{self.recipe.target_language}"

    # --- contents ----------------------------------------------------------------------------

    def transducer(self) -> Transducer:
        """The averaged model, loaded."""
        return load(self.model)

    def results(self, stage: StageName) -> Table | None:
        """The results of a stage; None if it has no record."""
        record = self.records.read(stage)
        return None if record is None else record["results"]

    def hashes(self, path: Callable[[TestSet], Path]) -> dict[str, str]:
        """The sha256 of a file of each test set."""
        try:
            return {test.name: digest(path(test)) for test in self.recipe.tests}
        except OSError as error:
            raise DataError(
                f"{error.filename}: cannot be read ({error.strerror}); check the path"
            ) from error

    @property
    def weights(self) -> str:
        """The sha256 of the averaged weights."""
        path = self.model / WEIGHTS
        if not path.exists():
            raise ConfigError(f"{self.directory}: nothing is averaged yet; begin with `average`")
        return digest(path)


@lru_cache(maxsize=1)
def _newest_state(checkpoints: Checkpoints, steps: tuple[int, ...]) -> Table:
    """The newest checkpoint's state, cached until `steps` change: verifying reads gigabytes."""
    newest = checkpoints.newest()
    return {"step": 0, "seconds": 0.0} if newest is None else newest.state()


def lines(path: Path) -> list[str]:
    """The lines of a test set, or of its translation."""
    return list(read_text(path))
