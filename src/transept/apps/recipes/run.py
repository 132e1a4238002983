"""A recipe in its work directory.

    recipe.toml    the recipe
    text/          the sentences, if the recipe writes them
    translated/    the texts that a model has translated, if any
    generated/     the texts that the recipe generates or shortens, if any
    vocabulary/    the tokenizer
    data/          the tokenized corpora
    run/           the training: config, metrics, checkpoints, and the average of the last
    tests/         the test sets, one sentence per line
    hypotheses/    their translations
    model/         the average in lower precision with a model card, ready for use
    records/       a record per stage, and the training time
    record.json    all records together, and the training curve

After the first stage the directory contains everything that the other stages need. It can be moved
to another machine without the text.
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
from transept.apps.recipes.recipe import DEV, RECORD, Recipe, StageName, TestSet
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
MINUTES: Final = "minutes"
"""The name of the record with the last value of --minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeRun:
    """A recipe in its work directory, shared by all stages."""

    name: str
    recipe: Recipe
    directory: Path
    data: Path | None = None
    """The directory of the text. Only the stages `translate` and `prepare` need it."""
    minutes: float | None = None
    """The total training time. None: until the last step."""
    system: str = "transept"
    """The toolkit that trains the model."""
    world: World = ALONE
    """The ranks that train together. Rank 0 runs all other stages alone."""

    def begin(self, argument: str = "work") -> None:
        """Claim the directory for this recipe. Later only the keys in `EXECUTION_KEYS` may change.

        Args:
            argument: The argument that selects the directory, for error messages.
        """
        path = self.directory / FILE
        if path.exists():
            means = [f"experiment.{key}" for key in EXECUTION_KEYS]
            changes = config.differences(config.load(Recipe, path), self.recipe, means)
            if changes:
                listed = "\n  ".join(changes)
                raise ConfigError(
                    f"{self.directory}: contains a recipe that began with other settings:\n"
                    f"  {listed}\nChoose another ", Argument(argument),
                )  # fmt: skip
        elif self.directory.exists() and {*self.directory.iterdir()} - {part_of(path)}:
            raise ConfigError(
                f"{self.directory}: is neither empty nor a recipe's directory; choose another ",
                Argument(argument),
            )
        else:
            make_directory(self.directory)
            write_file(path, config.dump(self.recipe).encode())

    # --- training ----------------------------------------------------------------------------

    def given(self, minutes: float | None) -> "RecipeRun":
        """The same run with its total minutes of training. Default: the earlier value.

        Args:
            minutes: The total. Infinity: until the recipe's last step.
        """
        record = self.records.read(MINUTES)
        before = None if record is None else record["minutes"]
        if minutes is None:
            return replace(self, minutes=before)
        trained = self.state["seconds"] / 60
        if minutes != before and minutes < trained:
            raise ConfigError(
                f"{self.directory}: was already trained for {trained:.3g} minutes, but ",
                Argument("minutes"), f" {minutes:g} is less; omit it to keep the earlier value, "
                "give more to continue, or choose another ", Argument("work"),
            )  # fmt: skip
        return replace(self, minutes=None if math.isinf(minutes) else minutes)

    def remember_minutes(self) -> None:
        """Store the minutes before training starts, because a killed run leaves no record."""
        record = {"minutes": self.minutes}
        if self.records.read(MINUTES) != record:
            self.records.keep(MINUTES, record)

    def experiment(self) -> Experiment:
        """The experiment with its corpora, vocabulary size and checkpoint interval."""
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
        """The state of the newest checkpoint: its step, seconds of training and more."""
        return _newest_state(self.checkpoints, tuple(self.checkpoints.steps()))

    # --- paths -------------------------------------------------------------------------------

    @property
    def text(self) -> Path:
        """The sentences, if the recipe writes them."""
        return self.directory / "text"

    def translated(self, name: str) -> Path:
        """The chunks of a text that a model has translated."""
        return self.directory / "translated" / name

    def generated(self, name: str) -> tuple[Path, Path]:
        """The two sides of a text that the recipe generates or shortens."""
        languages = (self.recipe.source_language, self.recipe.target_language)
        source, target = (self.directory / "generated" / f"{name}.{one}" for one in languages)
        return source, target

    @property
    def vocabulary(self) -> Path:
        """The tokenizer."""
        return self.directory / "vocabulary"

    @property
    def corpora(self) -> Path:
        """The prepared corpora."""
        return self.directory / "data"

    def corpus(self, name: str) -> Path:
        """A prepared corpus."""
        return self.corpora / name

    @property
    def training(self) -> Path:
        """The training run, `--output` of `transept train`."""
        return self.directory / "run"

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of the training run."""
        return Checkpoints(self.training / CHECKPOINTS)

    @property
    def model(self) -> Path:
        """The averaged model."""
        return self.training / f"average-{self.recipe.average.last}"

    @property
    def package(self) -> Path:
        """The averaged model in lower precision, with its card."""
        return self.directory / "model"

    @property
    def records(self) -> Records:
        """The records of the stages."""
        return Records(self.directory / "records")

    @property
    def record(self) -> Path:
        """The file with all records."""
        return self.directory / RECORD

    @property
    def tests(self) -> Path:
        """The test sets."""
        return self.directory / "tests"

    def sources(self, test: TestSet) -> Path:
        """The source sentences of a test set."""
        return self.tests / f"{test.name}.{self.recipe.source_language}"

    def references(self, test: TestSet) -> Path:
        """The reference translations of a test set."""
        return self.tests / f"{test.name}.{self.recipe.target_language}"

    def hypotheses(self, test: TestSet) -> Path:
        """The model's translations of a test set."""
        return self.directory / "hypotheses" / f"{test.name}.{self.recipe.target_language}"

    # --- contents ----------------------------------------------------------------------------

    def transducer(self) -> Transducer:
        """The averaged model, loaded."""
        return load(self.model)

    def results(self, stage: StageName) -> Table | None:
        """The results of a stage. None if it has no record."""
        record = self.records.read(stage)
        return None if record is None else record["results"]

    def hashes(self, path: Callable[[TestSet], Path]) -> dict[str, str]:
        """The SHA-256 of a file of each test set."""
        try:
            return {test.name: digest(path(test)) for test in self.recipe.tests}
        except OSError as error:
            raise DataError(
                f"{error.filename}: cannot be read ({error.strerror}); check the path"
            ) from error

    @property
    def weights(self) -> str:
        """The SHA-256 of the averaged weights."""
        path = self.model / WEIGHTS
        if not path.exists():
            raise ConfigError(f"{self.directory}: nothing is averaged yet; run `average` first")
        return digest(path)


@lru_cache(maxsize=1)
def _newest_state(checkpoints: Checkpoints, steps: tuple[int, ...]) -> Table:
    """The state of the newest checkpoint, cached because verifying it reads gigabytes."""
    newest = checkpoints.newest()
    return {"step": 0, "seconds": 0.0} if newest is None else newest.state()


def lines(path: Path) -> list[str]:
    """The lines of a test set or its translation."""
    return list(read_text(path))
