"""Averages the last checkpoints of a run (section 6.1 of the paper) and describes runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transept import config
from transept.assembly.run import collected_warnings
from transept.checkpoint import (
    CHECKPOINTS,
    CONFIG,
    MANIFEST,
    STATE,
    WEIGHTS,
    Bundle,
    Checkpoints,
    average,
    read_about,
    tokenizers_in,
    write_directory,
)
from transept.errors import Argument, CheckpointError, ConfigError, Problem
from transept.experiment import Experiment
from transept.training.observers import METRICS, read_metrics
from transept.training.state import Progress


def average_run(
    run: Path, *, last: int, output: Path | None, force: bool
) -> tuple[Path, list[int]]:
    """Average a run's last checkpoints into a bundle; return its directory and the steps."""
    if last < 1:
        raise ConfigError([Problem("last", f"{last} must be at least 1")])
    if not run.is_dir():
        raise CheckpointError(f"{run}: there is no such directory; check the path")
    if not (run / CHECKPOINTS).is_dir():
        raise CheckpointError(
            f"{run}: is not a run directory (no {CHECKPOINTS}/); give the directory that "
            "`transept train` wrote"
        )
    bundles = Checkpoints(run / CHECKPOINTS).last(last)
    if not bundles:
        raise CheckpointError(f"{run}: has no complete checkpoint yet; train it first")
    if len(bundles) < last:
        raise CheckpointError(
            f"{run}: has only {len(bundles)} complete regular checkpoints, not {last}; "
            "choose ", Argument("last"), f" {len(bundles)}, or train longer with a larger "
            "checkpoint.keep",
        )  # fmt: skip
    directory = output or run / f"average-{last}"
    if directory.exists():
        _check_replaceable(directory, run)
        if not force:
            raise CheckpointError(
                f"{directory}: already exists; use ", Argument("force"), " to replace it"
            )
    return directory, write_average(bundles, directory, replace=force)


def write_average(
    bundles: Sequence[Bundle],
    directory: Path,
    *,
    replace: bool,
    about: Mapping[str, Any] | None = None,
) -> list[int]:
    """Average checkpoints into a bundle; return their steps.

    Args:
        bundles: The checkpoints, oldest first.
        directory: The directory of the bundle.
        replace: Whether to replace an existing directory.
        about: Further metadata for the manifest.
    """
    newest = bundles[-1]
    steps = [int(bundle.about["step"]) for bundle in bundles]
    write_directory(
        directory,
        tensors={WEIGHTS: average(bundles)},
        texts={CONFIG: (newest.directory / CONFIG).read_text(encoding="utf-8")},
        folders=tokenizers_in(newest.directory),
        about={**newest.about, **(about or {}), "averaged_steps": steps},
        replace=replace,
    )
    return steps


def _check_replaceable(directory: Path, run: Path) -> None:
    """Reject a directory that is not a model, or that training could resume from."""
    model = (directory / MANIFEST).is_file() and not (directory / STATE).exists()
    if not model or run.resolve().is_relative_to(directory.resolve()):
        raise CheckpointError(
            f"{directory}: already exists, and ", Argument("force"),
            " replaces only models; choose another ", Argument("output"),
        )  # fmt: skip


# --- description -------------------------------------------------------------------------------


def describe(path: Path) -> dict[str, Any]:
    """Describe a run, a checkpoint or a bundle, after verifying every file."""
    if (path / CHECKPOINTS).is_dir():
        return _describe_run(path)
    return _describe_bundle(Bundle.open(path))


def _describe_run(path: Path) -> dict[str, Any]:
    checkpoints = Checkpoints(path / CHECKPOINTS)
    with collected_warnings() as damaged:
        newest = checkpoints.newest()
    if newest is None:
        raise CheckpointError(f"{path}: has no complete checkpoint yet; train it first")
    latest = {
        f"last {line['kind']}": {
            key: value for key, value in line.items() if key not in ("kind", "samples")
        }
        for line in read_metrics(path / METRICS)
        if line["kind"] in ("step", "validation", "quality")
    }
    progress = Progress.from_json(newest.state())
    return {
        "run": str(path),
        "checkpoints": checkpoints.steps(),
        "regular ones": checkpoints.regular_steps(),
        "damaged": damaged,
        "averages": _averages(path),
        "best": {"step": progress.best_step, progress.metric: progress.best},
        **latest,
        "newest": str(newest.directory),
        **_describe_bundle(newest),
    }


def _averages(run: Path) -> dict[str, Any]:
    """The steps that each average of a run was computed from."""
    found = {}
    for manifest in sorted(run.glob(f"average-*/{MANIFEST}")):
        try:
            found[manifest.parent.name] = read_about(manifest.parent).get("averaged_steps")
        except CheckpointError:
            found[manifest.parent.name] = "damaged"
    return found


def _describe_bundle(bundle: Bundle) -> dict[str, Any]:
    weights = bundle.weights()
    experiment = config.load(Experiment, bundle.directory / CONFIG)
    files = [path for path in bundle.directory.rglob("*") if path.is_file()]
    report: dict[str, Any] = {
        "kind": "checkpoint" if bundle.resumable else "model",
        "made by": dict(bundle.about),
        "parameters": sum(weight.numel() for weight in weights.values()),
        "stored in": bundle.precision,
        "bytes": sum(path.stat().st_size for path in files),
        "verified": f"{len(files)} files",
    }
    if bundle.resumable:
        report["state"] = bundle.state()
    return report | config.as_table(experiment)
