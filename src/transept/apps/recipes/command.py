"""`transept recipe`: run complete experiments."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from transept.apps.recipes.recipe import RECORD, StageName
from transept.cli.app import Flag
from transept.cli.outlets import ignore_closed_stdout
from transept.errors import RESUMABLE, ConfigError, RankError, StoppedError, keys_below

if TYPE_CHECKING:
    from transept.apps.recipes.run import RecipeRun
    from transept.apps.recipes.sweep import Sweep
    from transept.apps.recipes.view import RecipeView


@dataclass(frozen=True, kw_only=True)
class Share:
    """Which part of a recipe to run."""

    minutes: float | None = None
    """Total minutes of training, over all commands. Default: the value of the previous command;
    without one, and with `inf`, train until the recipe's last step. The interval between averaged
    checkpoints is the same fraction of the training as in the paper."""
    until: StageName | None = None
    """The last stage to run."""
    only: StageName | None = None
    """Run only this stage."""

    def __post_init__(self) -> None:
        if self.minutes is not None and not self.minutes > 0:
            raise ConfigError("--minutes must be more than 0")
        if self.until and self.only:
            raise ConfigError("--until and --only cannot be combined; omit one")

    def of(self, stages: Sequence[StageName]) -> list[StageName]:
        """The selected stages."""
        if (last := self.only or self.until) and last not in stages:
            raise ConfigError(f"this recipe has no stage {last}; it has {', '.join(stages)}")
        if self.only:
            return [self.only]
        return list(stages[: stages.index(self.until) + 1 if self.until else None])


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """The rows of a table, each of which trains the recipe with other values."""

    rows: Annotated[
        tuple[Path, ...], Parameter(consume_multiple=1, negative="", show_default=False)
    ] = ()
    """A folder with a TOML file for each row, such as configs/table3, or the files of some rows.
    The values of a file replace those of the recipe's experiment. The row `base` is the recipe
    itself. Results of other rows in --work are kept."""
    seeds: int = 3
    """The number of seeds. All rows are trained with the first one before the next."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise ConfigError("--seeds must be at least 1")


ALL = Share()
SHARE = Parameter(name="*", group=Group("How much", sort_key=1))
NO_ROWS = TableRows()
ROWS = Parameter(name="*", group=Group("A table, such as Table 3", sort_key=2))


def show(name: str | None = None, /, *overrides: str) -> None:
    """List the bundled recipes, or print one with all defaults.

    Args:
        name: A bundled recipe, or the path of a TOML file. Default: list the bundled recipes.
        overrides: Changed values, such as `experiment.model.dropout=0.2`.
    """
    from transept import config
    from transept.apps.recipes import recipe

    if name is None:
        for each in recipe.names():
            sys.stdout.write(f"{each:22} {recipe.load(each).title}\n")
    else:
        sys.stdout.write(config.dump(recipe.load(name, overrides)))


def run(
    name: str,
    /,
    *overrides: str,
    data: Path | None = None,
    work: Path | None = None,
    share: Annotated[Share, SHARE] = ALL,
    table: Annotated[TableRows, ROWS] = NO_ROWS,
    deterministic: Flag = False,
    dry_run: Flag = False,
) -> int:
    """Run a recipe, from text to a scored model.

    The stages are translate, prepare, train, average, decode, score, package and report. Only a
    recipe with a translator has the stage translate. If the translator is a recipe, that recipe is
    run first, in a directory next to --work.

    When stopped (Ctrl-C, SIGTERM, SIGHUP) it ends with exit code 75. The same command resumes it.
    After the first stage the work directory can be moved to another machine without the text.

    To use several GPUs or machines, start it with torchrun. `experiment.batch.micro_batches` must
    be at least the number of ranks. All ranks train; rank 0 runs the other stages.

    With --rows, the recipe is trained once for each row of a table and each seed. At the end, and
    when stopped, it prints perplexity and BLEU on the first test set with `perplexity = true`, with
    confidence intervals, beside those of Table 3. Checkpoints of completed rows are removed.

    Args:
        name: A bundled recipe (see `transept recipe show`), or the path of a TOML file.
        overrides: Changed values, such as `experiment.model.dropout=0.2`.
        data: The directory with the recipe's text. A public corpus is downloaded to it.
        work: The directory for all output. Default: runs/NAME, and runs/NAME-rows with --rows.
        share: The part of the recipe to run.
        table: The rows and seeds.
        deterministic: On a GPU, compute sums in a fixed order. The results are bit-identical, even
            if the run resumes on another machine with the same GPU model. Slightly slower.
        dry_run: Print which stages are done and which are not, without running any.
    """
    if deterministic:
        overrides = (*overrides, "experiment.training.sums=ordered")
    from transept.apps.recipes import recipe
    from transept.runtime.interrupt import import_torch

    ignore_closed_stdout()
    import_torch()
    from transept.apps.recipes.run import RecipeRun
    from transept.apps.recipes.sweep import Sweep, rows_of

    stem, loaded = recipe.find(name).stem, recipe.load(name, overrides)
    if table.rows:
        directory = work or Path("runs") / f"{stem}-rows"
        sweep = Sweep(name, overrides, rows_of(table.rows), table.seeds, directory, data)
        return _sweep(sweep, share, dry_run)
    begun = RecipeRun(name=stem, recipe=loaded, directory=work or Path("runs") / stem, data=data)
    with _joined(begun) as begun:
        if begun.world.leads:
            return _lead(begun, share, dry_run)
        from transept.apps.recipes.train import assist

        return _reported(assist(begun))


def _sweep(sweep: "Sweep", share: Share, dry_run: bool) -> int:
    """Run, or list, the rows of a table."""
    from transept.apps.recipes.view import RecipeView
    from transept.runtime.distributed import under_torchrun
    from transept.runtime.interrupt import terminable

    if share != ALL:
        raise ConfigError("--rows cannot be combined with --minutes, --until or --only")
    if under_torchrun():
        raise ConfigError("--rows trains one model at a time on one device; omit torchrun")
    view = RecipeView()
    if dry_run:
        for row_run in sweep.row_runs():
            view.row_run(row_run.name, row_run.run.record.exists())
        view.sweep(sweep.results())
        return 0
    with terminable():
        try:
            done = _run_rows(sweep, view)
        except KeyboardInterrupt:
            view.stopped()
            done = False
    view.sweep(sweep.results())
    return 0 if done else RESUMABLE


def _run_rows(sweep: "Sweep", view: "RecipeView") -> bool:
    """Run the rows and seeds that are not done. False if one was stopped."""
    from transept.apps.recipes.sweep import begin, remove_checkpoints

    row_runs, prepared = sweep.row_runs(), sweep.prepared
    prepared.begin()
    stages = prepared.recipe.stages
    if not run_stages(prepared, stages[: stages.index("train")], view):
        return False
    for row_run in row_runs:
        remaining = begin(row_run, prepared)
        done = row_run.run.record.exists()
        view.row_run(row_run.name, done)
        if not done and not run_stages(row_run.run, remaining, view):
            return False
        remove_checkpoints(row_run.run)
        sweep.write_results()
    return True


@contextmanager
def _joined(run: "RecipeRun") -> Iterator["RecipeRun"]:
    """The run with the ranks started by torchrun. Without torchrun, the run unchanged."""
    from transept.cli.train import join_ranks
    from transept.data.batching.feed import check_shares

    experiment = run.recipe.experiment
    with join_ranks(experiment, "experiment.distributed.patience") as world:
        world.pulse.rest()
        with keys_below("experiment"):
            check_shares(experiment.batch, world.size)
        yield replace(run, world=world)


def _lead(run: "RecipeRun", share: Share, dry_run: bool) -> int:
    """Run the stages in a single process or on rank 0."""
    from transept.apps.recipes.train import dismiss_ranks
    from transept.apps.recipes.view import RecipeView
    from transept.runtime.interrupt import terminable

    view = RecipeView()
    try:
        with terminable():
            run = run.given(share.minutes)
            code = _preview(run, view) if dry_run else _work(run, share.of(run.recipe.stages), view)
    except KeyboardInterrupt:
        view.stopped()
        if run.world.joined:
            raise StoppedError("stopped; run the same command to resume") from None
        return RESUMABLE
    if not run.world.joined:
        return code
    dismiss_ranks(run.world, code)
    return _reported(code)


def _reported(code: int) -> int:
    """Return the exit code of a rank. If it was stopped, record the cause for torchrun."""
    from transept.runtime.distributed import record_cause

    if code == RESUMABLE:
        record_cause(RankError("stopped by a signal, with a checkpoint: start it again to resume"))
    return code


def _preview(run: "RecipeRun", view: "RecipeView") -> int:
    from transept.apps.recipes.pipeline import completed
    from transept.apps.recipes.run import FILE

    if (run.directory / FILE).exists():
        run.begin()  # rejects the directory of another recipe
    done = dict(completed(run))
    for stage in run.recipe.stages:
        view.done(run, stage, done[stage]) if stage in done else view.to_do(stage)
    return 0


def _work(run: "RecipeRun", stages: Sequence[StageName], view: "RecipeView") -> int:
    run.begin()
    run.remember_minutes()
    if not run_stages(run, stages, view):
        return RESUMABLE
    if "report" in stages:
        view.scores(run)
    return 0


def run_stages(run: "RecipeRun", stages: Sequence[StageName], view: "RecipeView") -> bool:
    """Run stages in order. False if one was stopped; the same call then resumes."""
    from transept.apps.recipes.pipeline import run_stage

    for stage in stages:
        if stage == "translate" and not _run_translators(run, view):
            return False
        with view.waiting(stage):
            done = run_stage(run, stage, view.watchers())
        if done is None:
            view.stopped()
            return False
        view.done(run, stage, done)
    return True


def _run_translators(run: "RecipeRun", view: "RecipeView") -> bool:
    """Run the recipes that train a recipe's translators. False if one was stopped."""
    from transept.apps.recipes.translate import TranslateStage
    from transept.apps.recipes.translators import check_order, recipe_runs

    if TranslateStage(run).is_done():
        return True
    check_order(run)
    translators = list(recipe_runs(run))
    for each in translators:
        if each.world.joined and not (each.directory / RECORD).exists():
            raise ConfigError(
                f"{each.directory}: the translator {each.name} is not trained yet; run "
                f"`transept recipe run {each.name}` first"
            )
        view.translator(each)
        each.begin()
        if not run_stages(each, each.recipe.stages, view):
            return False
    if translators:
        view.translator(run)
    return True
