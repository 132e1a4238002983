"""The mean of a run's last checkpoints, section 6.1."""

from collections.abc import Sequence
from pathlib import Path

from transept.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    MANIFEST,
    STATE,
    WEIGHTS,
    Bundle,
    Checkpoints,
    average,
    tokenizers_in,
    write_directory,
)
from transept.errors import Argument, CheckpointError, ConfigError, Problem


def average_run(
    run: Path, *, last: int, output: Path | None, force: bool
) -> tuple[Path, list[int]]:
    """The mean of a run's last checkpoints as a bundle; where it lies, and of which steps."""
    _check_asked(run, last)
    bundles = Checkpoints(run / CHECKPOINTS).last(last)
    if not bundles:
        raise CheckpointError(f"{run}: has no whole checkpoint yet; train it first")
    if len(bundles) < last:
        raise CheckpointError(
            f"{run}: has {len(bundles)} whole checkpoints and not {last} at regular intervals; "
            "choose ", Argument("last"), f" {len(bundles)}, or train longer with a larger "
            "checkpoint.keep",
        )  # fmt: skip
    directory = output or run / f"average-{last}"
    if directory.exists():
        _check_replaceable(directory, run)
        if not force:
            raise CheckpointError(
                f"{directory}: already exists; ", Argument("force"), " replaces it"
            )
    return directory, write_average(bundles, directory, replace=force)


def write_average(bundles: Sequence[Bundle], directory: Path, *, replace: bool) -> list[int]:
    """The mean of checkpoints, oldest first, as a bundle; of which steps it is."""
    newest = bundles[-1]
    steps = [int(bundle.about["step"]) for bundle in bundles]
    write_directory(
        directory,
        tensors={WEIGHTS: average(bundles)},
        texts={CONFIG: (newest.directory / CONFIG).read_text(encoding="utf-8")},
        folders=tokenizers_in(newest.directory),
        about={**newest.about, "averaged_steps": steps},
        replace=replace,
    )
    return steps


def _check_asked(run: Path, last: int) -> None:
    """Whether there is a run, and a number of checkpoints that can be meant."""
    if last < 1:
        raise ConfigError([Problem("last", f"{last} must be at least 1")])
    if not run.is_dir():
        raise CheckpointError(f"{run}: there is no such directory; check the path")
    if not (run / CHECKPOINTS).is_dir():
        raise CheckpointError(
            f"{run}: is not a run (it has no {CHECKPOINTS}/); give the directory that "
            "`transept train` wrote"
        )


def _check_replaceable(directory: Path, run: Path) -> None:
    """Whether a model lies there, and nothing that training could go on from."""
    model = (directory / MANIFEST).is_file() and not (directory / STATE).exists()
    if not model or run.resolve().is_relative_to(directory.resolve()):
        raise CheckpointError(
            f"{directory}: already exists, and ", Argument("force"),
            " replaces a model and nothing else; choose another ", Argument("output"),
        )  # fmt: skip
