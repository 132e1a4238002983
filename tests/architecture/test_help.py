"""`--help` of every command: quick, and without waiting for torch."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cyclopts import App

from transept.cli.app import app

WITHOUT_TORCH = """
import sys
from transept.cli.app import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
heavy = {"torch", "numpy", "sentencepiece"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""


def commands(parent: App, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield prefix
    for name in parent:
        if not name.startswith("-"):
            yield from commands(parent[name], (*prefix, name))


def cpu_seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("command", list(commands(app)), ids=" ".join)
def test_help_is_quick_and_torch_free(command: tuple[str, ...]) -> None:
    words = [sys.executable, "-c", WITHOUT_TORCH, *command, "--help"]
    times = []
    for _ in range(3):
        before = cpu_seconds_of_children()
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        times.append(cpu_seconds_of_children() - before)
        assert result.returncode == 0, result.stderr
        assert "Usage: transept" in result.stdout
        assert "[ARGS" not in result.stdout
        # Defaults are shown as they would be typed.
        assert not re.search(r"\[default:\s+(True|False|None|\(|')", result.stdout)
        # A line that ends inside of `…` in a docstring leaves its indentation there.
        assert not re.search("[a-z] {3,}[a-z]", result.stdout)
    # CPU time, and the best of three: other work on the machine is not our delay.
    assert min(times) < 0.5


@pytest.mark.parametrize("command", [c for c in commands(app) if c], ids=" ".join)
def test_a_command_is_listed_with_the_first_line_of_its_own_help(command: tuple[str, ...]) -> None:
    def shown(*words: str) -> str:
        wide = os.environ | {"COLUMNS": "200"}
        line = [sys.executable, "-m", "transept", *words, "--help"]
        text = subprocess.run(line, capture_output=True, text=True, check=True, env=wide).stdout
        return " ".join(text.split())

    node = app
    for name in command:
        node = node[name]
    documented = node.help if node.default_command is None else node.default_command.__doc__
    assert documented
    first, _, rest = documented.partition("\n")
    assert first in shown(*command[:-1])
    own = shown(*command)
    assert first in own
    prose = rest.partition("Args:")[0].split()
    assert " ".join(prose).replace("`", "") in own


def test_help_tells_only_what_is_news() -> None:
    def shown(*words: str) -> str:
        line = [sys.executable, "-m", "transept", *words, "--help"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout

    assert "Each command has its own --help" in shown("data")
    own = shown("train")
    assert "--allow-change" in own
    assert own.startswith("Usage: transept train [OPTIONS] CONFIG [OVERRIDES...]\n\n")
    assert "Each command has its own --help" not in own


def boxes(*words: str, columns: int = 80) -> dict[str, list[str]]:
    """The lines of each box of a help page, by its title."""
    line = [sys.executable, "-m", "transept", *words, "--help"]
    narrow = os.environ | {"COLUMNS": str(columns)}
    text = subprocess.run(line, capture_output=True, text=True, check=True, env=narrow).stdout
    found: dict[str, list[str]] = {}
    for row in text.splitlines():
        if title := re.match("╭─ (.+?) ─", row):
            lines = found.setdefault(title[1], [])
        elif row.startswith("│"):
            lines.append(row.strip("│ "))
    return found


def test_commands_stand_in_groups_and_in_the_order_of_work() -> None:
    listed = {title: [line.split()[0] for line in lines] for title, lines in boxes().items()}
    assert listed == {
        "Use a model": ["translate", "serve", "parse", "score", "evaluate", "visualize", "info"],
        "Train one": ["demo", "recipe", "data", "tokenizer", "config", "train", "average"],
        "Make it smaller, move it": ["quantize", "shortlist", "export", "pieces"],
        "Help": ["completion", "--help", "--version"],
    }
    assert [line.split()[0] for line in boxes("data")["Commands"]][:2] == ["fetch", "prepare"]


@pytest.mark.parametrize("family", ["", "recipe", "data", "tokenizer", "config", "pieces"])
def test_a_command_is_listed_on_one_line_of_a_small_terminal(family: str) -> None:
    parent = app[family] if family else app
    # A second line would begin with a word of its own.
    first = [line.split()[0] for lines in boxes(*family.split()).values() for line in lines]
    assert sorted(first) == sorted({*parent} - {"-h"} - ({"--help", "--version"} - {*first}))


@pytest.mark.parametrize("command", list(commands(app)), ids=" ".join)
def test_no_box_is_too_long_to_be_read(command: tuple[str, ...]) -> None:
    for title, lines in boxes(*command, columns=200).items():
        options = [line for line in lines if line.lstrip("* ").startswith("-")]
        assert len(options) <= 12, title
