"""A recipe in its work directory.

    recipe.toml    the recipe
    vocabulary/    data/    run/    as in `Work`
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
from pathlib import Path
from typing import Final

from transept.apps.recipes.claim import claim
from transept.apps.recipes.recipe import DEV, Recipe, StageName, TestSet
from transept.apps.recipes.records import Records, Table
from transept.apps.recipes.work import Work
from transept.checkpoint import WEIGHTS
from transept.errors import Argument, ConfigError, DataError
from transept.experiment import MEANS, Experiment
from transept.runtime.distributed import ALONE, World
from transept.runtime.storage import digest
from transept.text.files import read_text

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

    def begin(self) -> None:
        """Claim the directory for this recipe, of which only the `MEANS` may change later."""
        means = [f"experiment.{key}" for key in MEANS]
        claim(self.directory, FILE, self.recipe, kind="recipe", argument="work", besides=means)

    def check(self) -> None:
        """Reject a directory that another recipe has claimed. Nothing is written."""
        if (self.directory / FILE).exists():
            self.begin()

    def given(self, minutes: float | None) -> "RecipeRun":
        """The same run with its total minutes of training: these, or else those given before.

        Args:
            minutes: Infinity: until the recipe's last step.
        """
        said = self.records.read(MINUTES)
        before = None if said is None else said["minutes"]
        if minutes is None:
            return replace(self, minutes=before)
        trained = self.work.trained.seconds / 60
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
        """The experiment with its corpora and its interval between checkpoints."""
        recipe = self.recipe.within(self.minutes)
        corpora = {text.name: self.work.corpus(text.name) for text in recipe.texts}
        return recipe.filled_in(corpora, self.work.corpus(DEV))

    @property
    def tests(self) -> tuple[TestSet, ...]:
        """The test sets."""
        return self.recipe.tests

    # --- paths -------------------------------------------------------------------------------

    @property
    def work(self) -> Work:
        """Vocabulary, corpora and training."""
        return Work(self.directory)

    @property
    def records(self) -> Records:
        """The records of the stages."""
        return Records(self.directory / "records")

    @property
    def record(self) -> Path:
        """All records in one."""
        return self.directory / RECORD

    @property
    def model(self) -> Path:
        """The averaged model."""
        return self.work.model(self.recipe.average.last)

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

    def results(self, stage: StageName) -> Table | None:
        """The results of a stage; None if it has no record."""
        record = self.records.read(stage)
        return None if record is None else record["results"]

    def hashes(self, path: Callable[[TestSet], Path]) -> dict[str, str]:
        """The sha256 of a file of each test set."""
        try:
            return {test.name: digest(path(test)) for test in self.tests}
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


def lines(path: Path) -> list[str]:
    """The lines of a test set, or of its translation."""
    return list(read_text(path))
