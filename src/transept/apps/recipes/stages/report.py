"""The last stage: all records and the training curve in one file."""

import time
from pathlib import Path
from typing import Any

from transept import config
from transept.apps.recipes.recipe import STAGES
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.work import Done
from transept.assembly.run import METRICS
from transept.errors import ConfigError
from transept.runtime.storage import write_json
from transept.training.observers import read_metrics


def report(run: RecipeRun) -> Done:
    """Gather the records of the other stages. This stage has none itself, and is always done."""
    begin = time.monotonic()
    found = {name: run.records.read(name) for name in STAGES[:-1]}
    records = {name: record for name, record in found.items() if record is not None}
    missing = [name for name in found if name not in records]
    if missing:
        raise ConfigError(f"{run.directory}: {', '.join(missing)}: not done yet")
    record = {
        "kind": "run",
        "name": run.name,
        "system": run.system,
        "recipe": config.as_table(run.recipe),
        "minutes": records["train"]["inputs"]["minutes"],
        "stages": records,
        "curve": curve(run.work.training),
    }
    write_json(run.record, record)
    return Done(f"{run.record}", already=False, seconds=time.monotonic() - begin)


def curve(run: Path) -> list[dict[str, float]]:
    """The points of the training curve, one for each validation whose −log p is finite.

    Seconds are those of training alone, over all commands.
    """
    points: list[dict[str, float]] = []
    latest: dict[str, Any] = {"seconds": 0.0, "target_tokens": 0}
    for line in read_metrics(run / METRICS):
        if line["kind"] == "step":
            latest = line
        elif line["kind"] == "validation" and line["nll"] is not None:
            spent = {key: latest[key] for key in ("seconds", "target_tokens")}
            points.append({"step": line["step"], **spent, "nll": line["nll"]})
    return points
