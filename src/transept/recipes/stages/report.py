"""The last stage: everything that was written down, in one file."""

import time

from transept import config
from transept.errors import ConfigError
from transept.recipes.curve import curve
from transept.recipes.recipe import STAGES
from transept.recipes.run import RecipeRun
from transept.recipes.work import Done
from transept.runtime.storage import write_json


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
