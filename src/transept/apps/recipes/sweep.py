"""A sweep: a recipe that is trained once for each row of a table and each seed.

A row is a TOML file. Its values replace those of the recipe's experiment, as in `configs/table3`.
The row `base` is the recipe itself. The text is prepared once:

    prepared/     the vocabulary, the tokenized corpora and the test sets
    ROW/SEED/     a recipe's work directory. Its checkpoints are removed when it is done
    sweep.json    the results

A row and seed is done if its directory contains `record.json`. So a sweep can be stopped and
resumed, and its directories can be computed on several machines and then copied together.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import NormalDist, correlation, fmean, variance
from types import MappingProxyType
from typing import Final

import torch

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.recipe import Recipe, StageName, TestSet
from transept.apps.recipes.run import RecipeRun
from transept.checkpoint import CHECKPOINTS
from transept.errors import ConfigError
from transept.model.transformer import Transformer
from transept.runtime.storage import make_directory, write_json

BASE: Final = "base"
"""The row without changes."""
PAPER: Final[Mapping[str, tuple[float, float]]] = MappingProxyType({
    "base": (4.92, 25.8), "big": (4.33, 26.4),
    "A-h1": (5.29, 24.9), "A-h4": (5.00, 25.5), "A-h16": (4.91, 25.8), "A-h32": (5.01, 25.4),
    "B-dk16": (5.16, 25.1), "B-dk32": (5.01, 25.4),
    "C-N2": (6.11, 23.7), "C-N4": (5.19, 25.3), "C-N8": (4.88, 25.5), "C-d256": (5.75, 24.5),
    "C-d1024": (4.66, 26.0), "C-ff1024": (5.12, 25.4), "C-ff4096": (4.75, 26.2),
    "D-drop0": (5.77, 24.6), "D-drop2": (4.95, 25.5), "D-ls0": (4.67, 25.3), "D-ls2": (5.47, 25.7),
    "E-learned": (4.92, 25.7),
})  # fmt: skip
"""Perplexity and BLEU of the rows of Table 3."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the table: the values in which it differs from the recipe's experiment."""

    name: str
    changes: tuple[str, ...] = ()


def rows_in(folder: Path) -> list[TableRow]:
    """The row `base`, and one row for each TOML file in a folder."""
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ConfigError(f"{folder}: contains no .toml files; each would be a row")
    files = [TableRow(path.stem, tuple(config.changes(path))) for path in paths]
    return [TableRow(BASE), *(row for row in files if row.name != BASE)]


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

    def results(self) -> list["RowResult"]:
        """The results of the runs that are done."""
        return [RowResult.of(row_run) for row_run in self.row_runs() if row_run.run.record.exists()]

    def write_results(self) -> None:
        """Write all results to one file."""
        table = {"recipe": self.recipe, "results": [asdict(one) for one in self.results()]}
        write_json(self.directory / "sweep.json", table)

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


@dataclass(frozen=True, slots=True)
class RowResult:
    """The result of a row and seed on the first test set with perplexity."""

    row: str
    seed: int
    steps: int
    parameters: int
    perplexity: float
    bleu: float
    seconds: float
    """The duration of the training."""
    device: str
    commit: str | None

    @classmethod
    def of(cls, row_run: RowRun) -> "RowResult":
        """Read the result of a run that is done."""
        record = json.loads(row_run.run.record.read_bytes())
        training = record["stages"]["train"]
        trained, by = training["results"], training["by"]
        scored = record["stages"]["score"]["results"]["tests"][test_of(row_run.run.recipe).name]
        return cls(
            row=row_run.row.name,
            seed=row_run.seed,
            steps=trained["step"],
            parameters=_n_parameters(row_run.run.recipe),
            perplexity=scored["perplexities"][0]["value"],
            bleu=scored["systems"][0]["scores"][0]["value"],
            seconds=trained["seconds"],
            device=by["devices"][-1],
            commit=by["commit"],
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


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds, with half of the width of its 95 % confidence interval."""

    value: float
    margin: float | None
    """None if no row has two seeds."""

    def __str__(self) -> str:
        return f"{self.value:.2f}" + ("" if self.margin is None else f" ± {self.margin:.2f}")


@dataclass(frozen=True, slots=True)
class RowSummary:
    """The results of a row over its seeds."""

    row: str
    n_seeds: int
    steps: int
    parameters: int
    perplexity: Mean
    bleu: Mean


def summarize(results: Sequence[RowResult]) -> list[RowSummary]:
    """Summarize the results of each row, in the order of the results."""
    rows: dict[str, list[RowResult]] = {}
    for one in results:
        rows.setdefault(one.row, []).append(one)
    perplexities = _means([[one.perplexity for one in row] for row in rows.values()])
    scores = _means([[one.bleu for one in row] for row in rows.values()])
    return [
        RowSummary(name, len(row), row[0].steps, row[0].parameters, perplexity, bleu)
        for (name, row), perplexity, bleu in zip(rows.items(), perplexities, scores, strict=True)
    ]


def _means(rows: Sequence[Sequence[float]]) -> Iterator[Mean]:
    """The mean of each row.

    Three seeds say little about the variance of one row. So the rows share one estimate of it.
    """
    several = [row for row in rows if len(row) > 1]
    freedom = sum(len(row) - 1 for row in several)
    for row in rows:
        margin = None
        if several:
            pooled = sum((len(each) - 1) * variance(each) for each in several) / freedom
            margin = _t_quantile(freedom) * sqrt(pooled / len(row))
        yield Mean(fmean(row), margin)


def _t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution, by its expansion around the normal one."""
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum((term / freedom**power for power, term in enumerate(terms)), 0.0)


def agreement(rows: Sequence[RowSummary]) -> float | None:
    """Spearman's rank correlation of the perplexities with those of Table 3.

    None if fewer than three rows are in Table 3.
    """
    known = [row for row in rows if row.row in PAPER]
    if len(known) < 3:
        return None
    ours = _ranks([row.perplexity.value for row in known])
    return correlation(ours, _ranks([PAPER[row.row][0] for row in known]))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value. Equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
