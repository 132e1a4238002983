"""`transept recipe`: whole experiments, one command each."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from transept.cli.app import Flag, complain
from transept.cli.outlets import outlive_readers
from transept.errors import RESUMABLE, ConfigError, RankError, StoppedError, keys_below
from transept.recipes.recipe import STAGES, StageName
from transept.wording import counted

if TYPE_CHECKING:
    from transept.cli.recipe_view import RecipeView
    from transept.recipes.run import RecipeRun


@dataclass(frozen=True, kw_only=True)
class Share:
    """How much of a recipe to do now."""

    minutes: float | None = None
    """How many minutes to train in all, over all commands. Unless given, as many as an earlier
    command was given, or else (and with `inf`) to the recipe's last step. The checkpoints that are
    averaged are as far apart as the paper's, in proportion to the training."""
    pause_after: float | None = None
    """End this command after so many minutes, with a checkpoint."""
    until: StageName | None = None
    """The last stage to do."""
    only: StageName | None = None
    """Do this stage alone."""

    def __post_init__(self) -> None:
        for option, value in (("--minutes", self.minutes), ("--pause-after", self.pause_after)):
            if value is not None and not value > 0:
                raise ConfigError(f"{option} must be more than 0")
        if self.until and self.only:
            raise ConfigError("--until and --only do not go together; leave one out")

    def of(self, stages: Sequence[StageName]) -> list[StageName]:
        """The chosen stages."""
        if self.only:
            return [self.only]
        return list(stages[: stages.index(self.until) + 1 if self.until else None])


ALL = Share()
SHARE = Parameter(name="*", group=Group("How much", sort_key=1))


def list_() -> None:
    """List the recipes that come with transept."""
    from transept.recipes import recipe

    for name in recipe.names():
        sys.stdout.write(f"{name:22} {recipe.load(name).title}\n")


def show(name: str, /, *overrides: str) -> None:
    """Print a recipe, with what it extends, overrides and defaults.

    Args:
        name: A recipe that `transept recipe list` names, or the path of a TOML file.
        overrides: Changes to it: `experiment.model.dropout=0.2`.
    """
    from transept import config
    from transept.recipes import recipe

    sys.stdout.write(config.dump(recipe.load(name, overrides)))


def run(
    name: str,
    /,
    *overrides: str,
    data: Path | None = None,
    work: Path | None = None,
    prepared: Path | None = None,
    share: Annotated[Share, SHARE] = ALL,
    deterministic: Flag = False,
    dry_run: Flag = False,
) -> int:
    """Run a recipe: prepare, train, average, decode, score, report.

    Stopped at any time (Ctrl-C, SIGTERM, SIGHUP, --pause-after) it ends with exit code 75, and the
    same command resumes. Completed stages are not repeated. After the first stage the work
    directory holds all that the later stages need: it can be moved to another machine without the
    text, and in pieces (`transept pieces`).

    On several GPUs or machines, let torchrun start it, with at least as many
    `experiment.batch.micro_batches` as there are ranks. All ranks train; rank 0 does the other
    stages.

    Args:
        name: A recipe that `transept recipe list` names, or the path of a TOML file.
        overrides: Changes to it: `experiment.model.dropout=0.2`.
        data: The directory with the recipe's text, or where a public corpus shall be fetched to.
        work: Where everything goes. By default runs/ and the recipe's name.
        prepared: The work directory of another recipe with the same text, vocabulary and test
            sets, or of the recipe for the opposite direction: its corpora are copied, instead of
            prepared anew.
        share: How much of it to do now.
        deterministic: On a GPU, compute sums in a fixed order: the same run gives the same bits,
            also if it goes on on another machine of the same kind, and takes a little longer.
        dry_run: Say what each stage would do, with sizes, and do nothing.
    """
    if deterministic:
        overrides = (*overrides, "experiment.training.sums=ordered")
    begin = time.monotonic()
    from transept.runtime.interrupt import import_torch

    outlive_readers()
    import_torch()
    cooked = replace(_found(name, overrides, work), data=data)
    end = None if share.pause_after is None else begin + 60 * share.pause_after
    with _joined(cooked) as cooked:
        if not cooked.world.leads:
            return _assist(cooked)
        return _lead(cooked, share, prepared, end, dry_run)


@contextmanager
def _joined(run: "RecipeRun") -> Iterator["RecipeRun"]:
    """The run with the ranks that torchrun started; without torchrun, as it is."""
    from transept.cli.train import joined
    from transept.data.batching.feed import check_shares

    experiment = run.recipe.experiment
    with joined(experiment, "experiment.distributed.patience") as world:
        world.pulse.rest()
        with keys_below("experiment"):
            check_shares(experiment.batch, world.size)
        yield replace(run, world=world)


def _assist(run: "RecipeRun") -> int:
    """Train when rank 0 does, and end as it does."""
    from transept.recipes.ranks import assist

    return _reported(assist(run))


def _lead(
    run: "RecipeRun", share: Share, prepared: Path | None, end: float | None, dry_run: bool
) -> int:
    """Do the stages, in a process by itself or on rank 0."""
    from transept.cli.recipe_view import RecipeView
    from transept.recipes.ranks import dismiss_ranks
    from transept.runtime.interrupt import terminable

    view = RecipeView()
    try:
        with terminable():
            run = run.given(share.minutes)
            if dry_run:
                view.preview(run)
                code = 0
            else:
                _begin(run, prepared)
                code = _work(run, share.of(STAGES), end, view)
    except KeyboardInterrupt:
        view.stopped()
        if run.world.joined:
            raise StoppedError("stopped; run the same command to resume") from None
        return RESUMABLE
    if not run.world.joined:
        return code
    if end is not None and time.monotonic() >= end:
        code = 0  # torchrun would take any other for a failure, and start the ranks again
    dismiss_ranks(run.world, code)
    return _reported(code)


def _reported(code: int) -> int:
    """The exit code of a rank; if it was stopped, torchrun is given the cause."""
    from transept.runtime.distributed import record_cause

    if code == RESUMABLE:
        record_cause(RankError("stopped by a signal, with a checkpoint: start it again to go on"))
    return code


def _begin(run: "RecipeRun", prepared: Path | None) -> None:
    run.begin()
    run.remember_minutes()
    if prepared is not None:
        from transept.recipes.sharing import take_prepared

        take_prepared(run, prepared)


def _work(run: "RecipeRun", stages: list[StageName], end: float | None, view: "RecipeView") -> int:
    from transept.recipes.pipeline import work_out

    for stage in stages:
        # Training makes some steps even where no time is left, so that calling the command again
        # and again comes to an end.
        can_wait = stage not in (stages[0], "train")
        late = can_wait and end is not None and time.monotonic() >= end
        done = None if late else work_out(run, stage, view.watchers(end))
        if done is None:
            view.stopped()
            return RESUMABLE
        view.done(stage, done)
    if "report" in stages:
        view.scores(run)
    return 0


def compare(
    first: Path,
    second: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
) -> None:
    """Compare two recipes that have been run, by paired bootstrap.

    They are compared on each test set that both have.

    Args:
        first: The work directory of the first; or its record, with its translations beside it,
            where `recipe report` links them.
        second: The same for the second; it may also be another toolkit's work directory, made by
            `benchmarks/peer_experiment.py`. At least one of the two must be a directory, because
            the references lie there.
        output: The record of the comparison to write, for `transept recipe report`.
    """
    from transept.recipes.comparing import Contender, compare
    from transept.runtime.storage import write_json

    record = compare(Contender.at(first), Contender.at(second))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_json(output, record)
    for test, found in record["tests"].items():
        one = found["comparisons"][0]
        name = one["convention"]["name"]
        sys.stdout.write(
            f"{test:24} {name} {one['difference']:+.2f} "
            f"[{one['interval']['low']:+.2f}, {one['interval']['high']:+.2f}]  "
            f"p = {one['p_value']:.4f}\n"
        )


def report(
    records: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
) -> None:
    """Write the page of results, with training curves, from records.

    Args:
        records: A directory with the record.json files of recipes, each under a name of its own,
            and with what `transept recipe compare` wrote.
        output: The page to write, beside that directory; its pictures go into the directory.
    """
    from transept.recipes.pages import Collection, page, pictures

    if records.resolve().parent != output.resolve().parent:
        raise ConfigError(f"{output}: must lie beside {records}, to which it links")
    read = Collection.read(records)
    for picture in pictures(read):
        (records / picture.file).write_text(picture.svg, encoding="utf-8")
    output.write_text(page(read), encoding="utf-8")
    runs, pairs = counted(len(read.runs), "run"), counted(len(read.comparisons), "comparison")
    sys.stdout.write(f"{output}: {runs}, {pairs}\n")


def ship(
    name: str,
    /,
    *overrides: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    work: Path | None = None,
    to: Literal["int8", "bf16"] = "int8",
) -> None:
    """Write a recipe's model in little room, with a card of its scores.

    The model is the averaged one. The card names the texts with their terms and attributions, and
    the scores of the weights as they are stored now: for these, the test sets are translated once
    more.

    Args:
        name: The recipe, which has been run.
        overrides: The changes that it was run with.
        output: The new directory; its name will be the name of the model.
        work: The work directory of that run. By default runs/ and the recipe's name.
        to: int8 stores a matrix as 8-bit integers with a scale for each row; bf16 keeps the upper
            half of every number.
    """
    from transept.cli.recipe_view import RecipeView
    from transept.recipes.shipping import LARGEST, ship, size_of

    shipped = _found(name, overrides, work)
    if not shipped.model.exists():
        raise ConfigError(
            f"{shipped.directory}: holds no averaged model of {name}; give its --work, or begin "
            f"with `transept recipe run {name} --until average`"
        )
    outlive_readers()
    shipped.begin()
    card = ship(shipped, output, to, RecipeView().watchers())
    size = size_of(output)
    sys.stdout.write(f"{card.markdown()}\n{output}: {size / 1e6:,.2f} MB\n")
    if size > LARGEST:
        complain(f"warning: that is more than the {LARGEST / 1e6:,.0f} MB of a shipped model")


def _found(name: str, overrides: tuple[str, ...], work: Path | None) -> "RecipeRun":
    from transept.recipes import recipe
    from transept.recipes.run import RecipeRun

    path = recipe.find(name)
    loaded = recipe.load(name, overrides)
    return RecipeRun(name=path.stem, recipe=loaded, directory=work or Path("runs") / path.stem)
