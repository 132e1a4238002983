"""A work directory belongs to one recipe."""

from dataclasses import replace
from pathlib import Path

import pytest

from transept import config
from transept.apps.recipes import recipe
from transept.apps.recipes.recipe import Averaging, Recipe
from transept.apps.recipes.run import FILE, RecipeRun
from transept.errors import ConfigError
from transept.runtime.storage import part_of

LOADED = recipe.load("europarl-en-de-small")


def claim(directory: Path, last: int = 5, argument: str = "work") -> None:
    changed = replace(LOADED, average=Averaging(last=last))
    RecipeRun(name="claimed", recipe=changed, directory=directory).begin(argument)


def test_begin_after_a_kill_claims_the_directory(tmp_path: Path) -> None:
    """A kill leaves a partial file under another name, which is ignored."""
    path = tmp_path / "new" / FILE
    path.parent.mkdir()
    part_of(path).write_text("la")
    claim(path.parent, last=3)
    assert [each.name for each in path.parent.iterdir()] == [FILE]
    assert config.load(Recipe, path).average.last == 3


def test_begin_rejects_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ConfigError, match="is neither empty nor a recipe's directory"):
        claim(tmp_path)


def test_begin_rejects_a_directory_of_another_recipe(tmp_path: Path) -> None:
    claim(tmp_path / "mine")
    claim(tmp_path / "mine")
    message = r"began with other settings:\n  average.last: 5 -> 3\nChoose another `output`"
    with pytest.raises(ConfigError, match=message):
        claim(tmp_path / "mine", last=3, argument="output")
