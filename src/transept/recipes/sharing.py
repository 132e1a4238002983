"""Text that was prepared for one recipe, for another that asks for the same."""

import shutil
from pathlib import Path
from typing import Final

from transept.errors import ConfigError
from transept.recipes.stages import RecipeRun

PREPARED: Final = ("vocabulary", "data", "tests")


def take_prepared(run: RecipeRun, other: Path) -> None:
    """Copy the corpora, the vocabulary and the test sets of another work directory.

    Args:
        run: A recipe that was begun; what it has prepared itself stays.
        other: The work directory of a recipe with the same text, vocabulary and test sets.
    """
    if run.records.read("prepare") is not None:
        return
    record = RecipeRun(name=run.name, recipe=run.recipe, directory=other).records.read("prepare")
    if record is None:
        raise ConfigError(f"{other}: nothing is prepared there")
    if record["inputs"] != run.preparation:
        raise ConfigError(
            f"{other}: was prepared from other text, with another vocabulary or other test sets "
            f"than {run.name} asks for"
        )
    for name in PREPARED:
        shutil.copytree(other / name, run.directory / name, dirs_exist_ok=True)
    run.records.write("prepare", record)
