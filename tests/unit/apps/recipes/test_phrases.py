"""Generated sentences about times of day."""

from pathlib import Path

import pytest

from transept.apps.recipes import recipe
from transept.apps.recipes.phrases import phrases
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.texts import read_aligned, write_generated


def test_half_hours_are_counted_from_the_next_hour_in_german() -> None:
    found = dict(phrases())
    assert found["It is half past three."] == "Es ist halb vier."
    assert found["It is half past twelve."] == "Es ist halb eins."
    assert found["It is one o'clock."] == "Es ist ein Uhr."
    assert found["We meet at a quarter to one."] == "Wir treffen uns um Viertel vor eins."


@pytest.mark.parametrize("name", ["all-en-de-base", "all-de-en-base"])
def test_generated_text_is_written_in_the_direction_of_the_recipe(
    name: str, tmp_path: Path
) -> None:
    run = RecipeRun(name=name, recipe=recipe.load(name), directory=tmp_path)
    write_generated(run)
    found = list(read_aligned(run.generated("times-of-day")))
    pairs = list(phrases())
    assert found == (pairs if name == "all-en-de-base" else [pair[::-1] for pair in pairs])
