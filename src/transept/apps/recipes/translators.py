"""The models that translate the text of a recipe: models, or recipes that train one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.recipe import Recipe
from transept.apps.recipes.run import FILE, RecipeRun
from transept.checkpoint import WEIGHTS
from transept.errors import ConfigError
from transept.runtime.storage import digest
from transept.shelf import find_model


def recipe_runs(run: RecipeRun) -> Iterator[RecipeRun]:
    """Yield the recipes that train translators of a recipe, each in a sibling directory."""
    names = (name for text in run.recipe.texts for name in text.translator)
    for name in dict.fromkeys(names):
        found = _recipe_run(run, name)
        if found is not None:
            yield found


def check_order(run: RecipeRun, waiting: tuple[RecipeRun, ...] = ()) -> None:
    """Reject recipes that wait for each other's translations.

    Args:
        run: The recipe to run.
        waiting: The recipes that wait for it.
    """
    if run.directory.absolute() in {each.directory.absolute() for each in waiting}:
        chain = " -> ".join(each.name for each in (*waiting, run))
        raise ConfigError(f"translator: is circular: {chain}; name a model instead")
    for each in recipe_runs(run):
        check_order(each, (*waiting, run))


def model_of(run: RecipeRun, name: str) -> Path:
    """The directory of a translator."""
    found = _recipe_run(run, name)
    return find_model(name) if found is None else found.model


def weights_of(model: Path) -> str:
    """The SHA-256 of the weights of a model."""
    return digest(model / WEIGHTS)


def _recipe_run(run: RecipeRun, name: str) -> RecipeRun | None:
    """The run of a recipe next to another. None if the name is not that of a recipe."""
    if name not in recipe.names() and not name.endswith(".toml"):
        return None
    path = recipe.find(name)
    directory = run.directory.absolute().parent / path.stem
    begun = directory / FILE
    # A recipe that was begun with other values keeps them.
    chosen = config.load(Recipe, begun) if begun.exists() else recipe.load(name)
    there = replace(run, name=path.stem, recipe=chosen, directory=directory, minutes=None)
    return there.given(None)
