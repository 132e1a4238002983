"""A sweep: a recipe that is trained once for each row of a table and each seed.

A row is a TOML file. Its values replace those of the recipe's experiment, as in `configs/table3`.
The row `base` is the recipe itself. The text is prepared once:

    prepared/     the vocabulary, the tokenized corpora and the test sets
    ROW/SEED/     a recipe's work directory. Its checkpoints are removed when it is done
    sweep.json    the results of all rows and seeds in the directory

A row and seed is done if its directory contains `record.json`. So a sweep can be stopped and
resumed, its rows can be trained by several commands, and its directories can be computed on several
machines and then copied together. Of a row and seed that is done, `recipe.toml` and `record.json`
are enough.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import torch

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.recipe import RECORD, Recipe, StageName, TestSet, fingerprint
from transept.apps.recipes.run import FILE, RecipeRun
from transept.apps.recipes.table import RowResult
from transept.checkpoint import CHECKPOINTS
from transept.errors import Argument, ConfigError
from transept.model.transformer import Transformer
from transept.runtime.storage import make_directory, write_json

BASE: Final = "base"
"""The row without changes."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the table: the values in which it differs from the recipe's experiment."""

    name: str
    changes: tuple[str, ...] = ()


def rows_of(paths: Sequence[Path]) -> list[TableRow]:
    """The row `base`, and one row for each TOML file, given by its path or by its folder."""
    files = [file for path in paths for file in _files(path)]
    rows = [TableRow(file.stem, tuple(config.changes(file))) for file in dict.fromkeys(files)]
    return [TableRow(BASE), *(row for row in rows if row.name != BASE)]


def _files(path: Path) -> list[Path]:
    if path.suffix == ".toml":
        return [path]
    files = sorted(path.glob("*.toml"))
    if not files:
        raise ConfigError(
            f"{path}: is neither a .toml file nor a folder with .toml files, each of which is a "
            "row; write changed values before ", Argument("rows"),
        )  # fmt: skip
    return files


@dataclass(frozen=True, slots=True)
class RowRun:
    """A row with a seed."""

    row: TableRow
    seed: int
    run: RecipeRun

    @property
    def name(self) -> str:
        """The name in the output."""
        return f"{self.row.name}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A recipe and its rows in a work directory."""

    recipe: str
    overrides: tuple[str, ...]
    rows: Sequence[TableRow]
    seeds: int
    directory: Path
    data: Path | None = None

    @property
    def prepared(self) -> RecipeRun:
        """The run that prepares the text for all rows."""
        run = self._run(TableRow(BASE), self.directory / "prepared")
        test_of(run.recipe)  # rejects a recipe whose rows cannot be compared
        return run

    def row_runs(self) -> list[RowRun]:
        """Every row and seed. All rows come first with the first seed, then with the next."""
        return [self._row_run(row, 1 + seed) for seed in range(self.seeds) for row in self.rows]

    def results(self) -> list[RowResult]:
        """All results in the directory: by seed, then `base` and the other rows by name."""
        found = map(result_of, self.directory.glob(f"*/[0-9]*/{RECORD}"))
        return sorted(found, key=lambda one: (one.seed, one.row != BASE, one.row))

    def write_results(self) -> None:
        """Write all results to one file."""
        results = [asdict(one) for one in self.results()]
        settings = {"recipe": self.recipe, "overrides": self.overrides}
        write_json(self.directory / "sweep.json", {**settings, "results": results})

    def _row_run(self, row: TableRow, seed: int) -> RowRun:
        run = self._run(row, self.directory / row.name / str(seed), seed)
        sizes = [each.recipe.experiment.model.vocab_size for each in (run, self.prepared)]
        if sizes[0] != sizes[1]:
            raise ConfigError(
                f"{row.name}: has model.vocab_size = {sizes[0]}, but all rows share a vocabulary "
                f"of {sizes[1]}; remove the value"
            )
        return RowRun(row, seed, run)

    def _run(self, row: TableRow, directory: Path, seed: int = 1) -> RecipeRun:
        changes = [f"experiment.{change}" for change in row.changes]
        fixed = [f"experiment.training.seed={seed}", 'package="none"']
        try:
            loaded = recipe.load(self.recipe, (*changes, *self.overrides, *fixed))
        except ConfigError as error:
            raise ConfigError(f"row {row.name}: {error}") from error
        return RecipeRun(name=row.name, recipe=loaded, directory=directory, data=self.data)


def begin(row_run: RowRun, prepared: RecipeRun) -> list[StageName]:
    """Link a run to the prepared text. Return its remaining stages."""
    run, stages = row_run.run, row_run.run.recipe.stages
    run.begin()
    for path in (prepared.vocabulary, prepared.corpora, prepared.tests):
        link = run.directory / path.name
        if not link.is_symlink():
            link.symlink_to(Path("..", "..", prepared.directory.name, path.name))
    first = stages.index("train")
    for stage in stages[:first]:
        record = prepared.records.read(stage)
        assert record is not None
        run.records.keep(stage, record)
    return list(stages[first:])


def remove_checkpoints(run: RecipeRun) -> None:
    """Remove the checkpoints of a run. The averaged model remains."""
    checkpoints = run.training / CHECKPOINTS
    shutil.rmtree(checkpoints, ignore_errors=True)
    make_directory(checkpoints)  # marks the directory of a run, for `transept translate --model`


# --- results -------------------------------------------------------------------------------------


def result_of(record: Path) -> RowResult:
    """Read the result of a run from its record."""
    trained_recipe = config.load(Recipe, record.with_name(FILE))
    stages = json.loads(record.read_bytes())["stages"]
    training = stages["train"]
    trained, by = training["results"], training["by"]
    scored = stages["score"]["results"]["tests"][test_of(trained_recipe).name]
    return RowResult(
        row=record.parents[1].name,
        seed=trained_recipe.experiment.training.seed,
        steps=trained["step"],
        parameters=_n_parameters(trained_recipe),
        perplexity=scored["perplexities"][0]["value"],
        bleu=scored["systems"][0]["scores"][0]["value"],
        seconds=trained["seconds"],
        evaluation_seconds=stages["decode"]["seconds"] + stages["score"]["seconds"],
        device=by["devices"][-1],
        commit=by["commit"],
        corpora=fingerprint(training["inputs"]["corpora"])[:12],
    )


def test_of(swept: Recipe) -> TestSet:
    """The test set that rows are compared on."""
    for test in swept.tests:
        if test.perplexity:
            return test
    raise ConfigError("tests: none of them has perplexity = true; set it for one")


def _n_parameters(trained: Recipe) -> int:
    with torch.device("meta"):
        return Transformer(trained.experiment.model).n_parameters()
