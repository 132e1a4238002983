"""`transept train` and `transept average`: from prepared corpora to checkpoints to a model."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from transept import config as configs
from transept.cli.app import Flag, complain
from transept.errors import RESUMABLE, ConfigError, RankError, StoppedError
from transept.experiment import Experiment
from transept.runtime.interrupt import import_torch, terminable

if TYPE_CHECKING:
    from transept.cli.training_view import View
    from transept.runtime.distributed import World
    from transept.training.trainer import Outcome

FINE_TUNING: Final = (
    "batch.source_tokens=1000",
    "batch.target_tokens=1000",
    "schedule.factor=0.02",
    "schedule.warmup_steps=20",
    "training.max_steps=300",
    "validation.every_steps=100",
    "checkpoint.every_steps=100",
)
"""Defaults for a run that starts from a model: with the learning rate of a full training it would
forget what it has learned."""
UNFINISHED = ("stopped", "out of time")
"""The outcomes of runs that can be resumed."""


@contextmanager
def _stoppable() -> Iterator[None]:
    """Exit with code 75 if the run is stopped before it can write a checkpoint."""
    if "WORLD_SIZE" in os.environ:
        # Signals kill torchrun's workers: they wait for each other in C++, where no handler runs.
        yield
        return
    try:
        with terminable():
            yield
    except KeyboardInterrupt:
        raise StoppedError(
            "stopped without a new checkpoint. Run the same command to resume from the newest "
            "checkpoint, or to start over if none exists"
        ) from None


@_stoppable()
def train(
    config: Path,
    /,
    *overrides: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    init: Path | None = None,
    minutes: float | None = None,
    allow_change: Flag = False,
    tensorboard: Flag = False,
    deterministic: Flag = False,
) -> int:
    """Train a model, or resume a run.

    The exit code is 0 after the last step or after early stopping. It is 75 if the run was stopped
    by Ctrl-C, SIGTERM, SIGUSR1, SIGHUP or --minutes: run the same command to resume.

    On several GPUs or machines, start it with torchrun. `batch.micro_batches` must be at least the
    number of ranks:
    `torchrun --nproc-per-node 8 -m transept train CONFIG batch.micro_batches=8`.

    Args:
        config: The TOML file of an experiment, such as configs/base.toml. `transept info CONFIG`
            prints all keys. Or a model to fine-tune, by its directory or name: its config with
            batches of 1,000 tokens, a low learning rate and 300 steps.
        overrides: Changes to it: `training.max_steps=2000 model.n_heads=16`.
        output: The run's directory. Default: runs/ plus the config's name, or for a model
            runs/NAME-tuned.
        init: Start from the weights of this model instead of random weights: a directory, or the
            name of a bundled model.
        minutes: Stop after this number of minutes, with a checkpoint.
        allow_change: Resume even if the config or a corpus changed since the run started.
        tensorboard: Also write TensorBoard event files (needs the extra `tb`).
        deterministic: On a GPU, compute sums in a fixed order: the same run gives bitwise identical
            results, slightly slower. Same as training.sums=ordered.
    """
    if minutes is not None and not minutes > 0:
        raise ConfigError("--minutes must be more than 0")
    if deterministic:
        overrides = (*overrides, "training.sums=ordered")
    experiment, name, tuned = _experiment(config, overrides)
    directory = output or Path("runs") / name
    import_torch()
    from transept.assembly import train as run

    start = partial(
        run,
        experiment,
        directory,
        init=init or tuned,
        minutes=minutes,
        allow_change=allow_change,
        tensorboard=tensorboard,
    )
    return _run_ranks(start, experiment, directory, minutes)


def _run_ranks(
    start: "Callable[..., Outcome]", experiment: Experiment, directory: Path, minutes: float | None
) -> int:
    """Join the other ranks and start the run. Return the exit code."""
    with join_ranks(experiment, "distributed.patience") as world:
        with _views(experiment, minutes, world) as views:
            outcome = start(observers=views, world=world)
        if world.leads and outcome in UNFINISHED:
            sys.stderr.write(f"{directory}: saved; run the same command to resume\n")
    return _exit_code(outcome, world)


def _experiment(config: Path, overrides: Sequence[str]) -> tuple[Experiment, str, Path | None]:
    """The experiment of a config or model, the name of its run, and the model to fine-tune."""
    if (model := _model_named(config)) is None:
        return load_experiment(config, overrides), config.stem, None
    return _fine_tuning(config, model, overrides), f"{config.name}-tuned", config


def _model_named(name: Path) -> Path | None:
    """The directory of the model with this name or path; None if it is a config file."""
    if name.is_file():
        return None
    import_torch()
    from transept.shelf import find_model, is_model

    return find_model(name) if is_model(name) else None


def _fine_tuning(name: Path, model: Path, overrides: Sequence[str]) -> Experiment:
    """The model's config with the settings of a fine-tuning. A corpus must be named.

    Otherwise `train RUN`, meant to resume a run, would start another one on the same corpus.
    """
    if not any(override.startswith("data.train") for override in overrides):
        raise ConfigError(
            f"{name}: is a model. To fine-tune it, name a corpus: 'data.train=[{{path=\"DIR\"}}]'. "
            "To resume a run, give its config file"
        )
    return configs.load(Experiment, model / "config.toml", (*FINE_TUNING, *overrides))


def join_ranks(experiment: Experiment, setting: str) -> AbstractContextManager["World"]:
    """Join the ranks that train together. `setting` is the config key of the patience."""
    import torch

    from transept.runtime.distributed import join_world

    together = experiment.distributed
    wire = torch.bfloat16 if together.gradients == "bf16" else None
    return join_world(together.patience, wire, complain, setting)


@contextmanager
def _views(experiment: Experiment, minutes: float | None, world: "World") -> Iterator[list["View"]]:
    """The progress views, only on the leading rank."""
    from rich.console import Console

    from transept.cli.training_view import view_for

    if not world.leads:
        yield []
        return
    console = Console(stderr=True, highlight=False)
    view = view_for(console, experiment.training.max_steps, minutes)
    try:
        yield [view]
    finally:
        view.close()


def _exit_code(outcome: "Outcome", world: "World") -> int:
    from transept.runtime.distributed import record_cause

    if not world.joined:
        return RESUMABLE if outcome in UNFINISHED else 0
    if outcome == "stopped":
        record_cause(RankError("stopped by a signal, with a checkpoint: start it again to resume"))
        return RESUMABLE
    # Also when out of time: torchrun treats any other code as a failure and restarts the ranks.
    return 0


def load_experiment(file: Path, overrides: Sequence[str]) -> Experiment:
    """Load an experiment. Recipes and models are rejected, with the command to use instead."""
    if file.is_dir() or not file.exists():
        raise ConfigError(
            f"{file}: is neither a config file nor a model. Use `transept recipe run {file}` to "
            "run a recipe"
        )
    if "experiment" in configs.keys(file):
        raise ConfigError(
            f"{file}: is a recipe. Use `transept recipe run {file}` to run it, or "
            f"`transept recipe show {file}` to print it"
        )
    return configs.load(Experiment, file, overrides)


def average(
    run: Path,
    /,
    *,
    last: int = 5,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    force: Flag = False,
) -> None:
    """Average a run's last checkpoints into one model (section 6.1).

    Args:
        run: The directory of a run.
        last: The number of checkpoints: 5 for base and 20 for big in the paper. Only checkpoints
            saved at regular intervals or at the end of the run count, not those saved for the best
            validation, after a signal or, if only `checkpoint.every_steps` is set, at the end of
            --minutes.
        output: The new model's directory. Default: RUN/average-N.
        force: Replace the output directory.
    """
    import_torch()
    from transept.assembly import average_run
    from transept.checkpoint import CHECKPOINTS, Checkpoints

    directory, steps = average_run(run, last=last, output=output, force=force)
    listed = ", ".join(f"{step:,}" for step in steps)
    sys.stdout.write(f"averaged steps {listed} into {directory}\n")
    newest = Checkpoints(run / CHECKPOINTS).steps()[-1]
    if newest not in steps:
        complain(f"step {newest:,} is not included: it was not saved at a regular interval")
