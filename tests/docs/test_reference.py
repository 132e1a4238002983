"""The generated reference covers every command and key, and the glossary names only real keys."""

import re
from pathlib import Path

import pytest
from making.commands import commands, page, write_commands
from making.settings import PAPER, keys, write_settings

from transept.apps.recipes.recipe import Recipe
from transept.cli.app import app
from transept.experiment import Experiment

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = dict(commands(app))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_page_of_a_command_explains_every_argument(path: tuple[str, ...]) -> None:
    text = page(path, COMMANDS[path])
    assert text.startswith(f"# transept {' '.join(path)}\n")
    rows = re.findall(r"^\| (`.+?) \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    shown = [one for one in COMMANDS[path].assemble_argument_collection() if one.show]
    assert len(rows) == len(shown)
    for names, kind, _, meaning in rows:
        assert kind, names
        assert meaning, names


def test_every_command_has_a_page_that_the_index_links(tmp_path: Path) -> None:
    write_commands(tmp_path)
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    for path in COMMANDS:
        assert (tmp_path / f"{'-'.join(path)}.md").exists()
        assert f"[`{' '.join(path)}`]({'-'.join(path)}.md)" in index


@pytest.mark.parametrize("schema", [Experiment, Recipe])
def test_every_key_has_a_row_with_a_meaning(schema: type, tmp_path: Path) -> None:
    write_settings(tmp_path)
    text = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md"))
    for key in keys(schema):
        key = key.removeprefix("experiment.")
        (row,) = re.findall(rf"^\| `{re.escape(key)}` \| (.*) \|$", text, re.MULTILINE)
        kind, _, meaning, _ = re.split(r" ?(?<!\\)\| ?", f"{row} ")
        assert kind, key
        assert meaning, key


def test_sections_of_the_paper_belong_to_keys_that_exist() -> None:
    assert {*PAPER} <= {*keys(Experiment), *keys(Recipe)}


def test_glossary_names_keys_that_exist() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    known = {*keys(Experiment), *keys(Recipe)}
    tables = {key.partition(".")[0] for key in keys(Experiment)} - {"model", "training", "data"}
    named = re.findall(r"`(\w+\.\w+)(?: = [^`]+)?`", text)
    wrong = [key for key in named if key.partition(".")[0] in tables and key not in known]
    settings = [key for key in named if key.startswith(("model.", "training.")) and key in known]
    assert wrong == []
    assert len(settings) > 10
