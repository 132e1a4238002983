"""What a run, a checkpoint or a bundle is, told from its files."""

from pathlib import Path
from typing import Any

from transept import config
from transept.assembly.run import METRICS, collected_warnings
from transept.checkpoint import CHECKPOINTS, CONFIG, MANIFEST, Bundle, Checkpoints, read_about
from transept.errors import CheckpointError
from transept.experiment import Experiment
from transept.training.observers import read_metrics


def describe(path: Path) -> dict[str, Any]:
    """Everything about a run, a checkpoint or a bundle, every file of it verified."""
    if (path / CHECKPOINTS).is_dir():
        return _describe_run(path)
    return _describe_bundle(Bundle.open(path))


def _describe_run(path: Path) -> dict[str, Any]:
    checkpoints = Checkpoints(path / CHECKPOINTS)
    with collected_warnings() as damaged:
        newest = checkpoints.newest()
    if newest is None:
        raise CheckpointError(f"{path}: has no whole checkpoint yet; train it first")
    lines = read_metrics(path / METRICS)
    of_kind = {kind: [x for x in lines if x["kind"] == kind] for kind in ("step", "validation")}
    hidden = ("kind", "text")
    latest = {
        f"last {kind}": {key: value for key, value in found[-1].items() if key not in hidden}
        for kind, found in of_kind.items()
        if found
    }
    state = newest.state()
    return {
        "run": str(path),
        "checkpoints": checkpoints.steps(),
        "regular ones": checkpoints.regular_steps(),
        "damaged": damaged,
        "averages": _averages(path),
        "best": {"step": state["best_step"], "nll": state["best_nll"]},
        **latest,
        "newest": str(newest.directory),
        **_describe_bundle(newest),
    }


def _averages(run: Path) -> dict[str, Any]:
    """Of which steps each average of a run is the mean."""
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
