"""A recipe in the directory where it is worked out: what is to be done, and where it all lies.

    recipe.toml    what is done here
    vocabulary/    data/    run/    as `Work` has them
    tests/         the test sets, a sentence a line
    hypotheses/    how they were translated
    records/       what each stage wrote down, and how long the training shall be
    record.json    all of it together, and the training curve: what a report is made from

After the first stage the directory holds all that the others need: it can be moved to another
machine, in pieces if need be, and the text can stay behind.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from transept.checkpoint import WEIGHTS
from transept.errors import ConfigError, DataError
from transept.experiment import MEANS, Experiment
from transept.recipes.claim import claim
from transept.recipes.recipe import DEV, Recipe, StageName, TestSet
from transept.recipes.records import Records, Table
from transept.recipes.work import Work
from transept.runtime.distributed import ALONE, World
from transept.runtime.storage import digest
from transept.text.files import read_text

FILE: Final = "recipe.toml"
RECORD: Final = "record.json"
MINUTES: Final = "minutes"
"""The record of how long to train, as the last --minutes said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeRun:
    """What all stages know."""

    name: str
    recipe: Recipe
    directory: Path
    data: Path | None = None
    """Where the text lies; not needed once it is prepared."""
    minutes: float | None = None
    """How long to train in all; None: to the last step."""
    system: str = "transept"
    """The toolkit whose model it is."""
    world: World = ALONE
    """The ranks that train it together. Rank 0 does all other stages by itself."""

    def begin(self) -> None:
        """Claim the directory for this recipe, of which only the `MEANS` may change later."""
        means = [f"experiment.{key}" for key in MEANS]
        claim(self.directory, FILE, self.recipe, kind="recipe", option="--work", besides=means)

    def given(self, minutes: float | None) -> "RecipeRun":
        """The same run with its minutes of training in all: these, or else those given before.

        Args:
            minutes: Infinity means as many as the recipe's steps take.
        """
        said = self.records.read(MINUTES)
        before = None if said is None else said["minutes"]
        if minutes is None:
            return replace(self, minutes=before)
        trained = self.work.trained.seconds / 60
        if minutes != before and minutes < trained:
            raise ConfigError(
                f"{self.directory}: was trained for {trained:.3g} minutes already, and --minutes "
                f"{minutes:g} is less; leave it out to keep those of before, give more to train "
                "on, or choose another --work"
            )
        return replace(self, minutes=None if math.isinf(minutes) else minutes)

    def remember_minutes(self) -> None:
        """Write the minutes down before training begins: if it is killed, it leaves no record."""
        said = {"minutes": self.minutes}
        if self.records.read(MINUTES) != said:
            self.records.keep(MINUTES, said)

    def experiment(self) -> Experiment:
        """What is trained, and how."""
        recipe = self.recipe.within(self.minutes)
        corpora = {text.name: self.work.corpus(text.name) for text in recipe.texts}
        return recipe.filled_in(corpora, self.work.corpus(DEV))

    @property
    def tests(self) -> tuple[TestSet, ...]:
        """What is translated."""
        return self.recipe.tests

    # --- where things lie ------------------------------------------------------------------------

    @property
    def work(self) -> Work:
        """Vocabulary, corpora and training."""
        return Work(self.directory)

    @property
    def records(self) -> Records:
        """What the stages wrote down."""
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
        """How people translated a test set."""
        return self.directory / "tests" / f"{test.name}.{self.recipe.target_language}"

    def hypotheses(self, test: TestSet) -> Path:
        """How the model translated a test set."""
        return self.directory / "hypotheses" / f"{test.name}.{self.recipe.target_language}"

    # --- what stands in it -----------------------------------------------------------------------

    def results(self, stage: StageName) -> Table | None:
        """What a stage found; None where nothing is written down."""
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
