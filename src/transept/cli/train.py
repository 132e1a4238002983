"""`transept train`: from prepared corpora to checkpoints."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

RESUMABLE = 75


def train(
    config: Path,
    /,
    *overrides: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    init: Path | None = None,
    minutes: float | None = None,
    allow_change: Annotated[bool, Parameter(negative="")] = False,
    tensorboard: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Train a model, or go on where an earlier run of the same config stopped.

    Ends with exit code 0 when the last step is done or validation no longer improves, and with 75
    when it was stopped by Ctrl-C, SIGTERM, SIGUSR1 or --minutes: the same command then goes on.

    Args:
        config: A TOML file of an experiment.
        overrides: Changes laid over it: `training.max_steps=2000 model.n_heads=16`.
        output: The run's directory. By default runs/ and the config's name.
        init: Start from this model's weights instead of random ones (fine-tuning).
        minutes: Stop after so many minutes, with a checkpoint.
        allow_change: Go on although the config differs from the one the run began with.
        tensorboard: Write TensorBoard's files too (needs the extra `tb`).
    """
    from rich.console import Console

    from transept import config as toml
    from transept.assembly import train as run
    from transept.cli.training_view import view_for
    from transept.experiment import Experiment

    experiment = toml.load(Experiment, config, overrides)
    directory = output or Path("runs") / config.stem
    view = view_for(Console(stderr=True, highlight=False), experiment.training.max_steps)
    try:
        outcome = run(
            experiment,
            directory,
            init=init,
            minutes=minutes,
            allow_change=allow_change,
            tensorboard=tensorboard,
            observers=[view],
        )
    finally:
        view.close()
    return RESUMABLE if outcome in ("stopped", "out of time") else 0
