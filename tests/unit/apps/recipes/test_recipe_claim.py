"""A directory belongs to one plan, and to a whole one."""

from pathlib import Path

import pytest

from transept import config
from transept.apps.recipes.claim import claim
from transept.apps.recipes.recipe import Averaging
from transept.errors import ConfigError
from transept.runtime.storage import part_of


def test_a_claim_that_was_killed_is_made_again(tmp_path: Path) -> None:
    """It leaves half a file, under another name, which claims nothing."""
    path = tmp_path / "new" / "plan.toml"
    path.parent.mkdir()
    part_of(path).write_text("la")
    claim(path.parent, path.name, Averaging(last=3), kind="plan", argument="work")
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert config.load(Averaging, path) == Averaging(last=3)


def test_what_belongs_to_another_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(ConfigError, match="is not empty and not a plan; choose another `work`"):
        claim(tmp_path, "plan.toml", Averaging(), kind="plan", argument="work")
    claim(tmp_path / "mine", "plan.toml", Averaging(), kind="plan", argument="work")
    with pytest.raises(ConfigError, match="began with other settings:\\n  last: 5 -> 3"):
        claim(tmp_path / "mine", "plan.toml", Averaging(last=3), kind="plan", argument="work")
