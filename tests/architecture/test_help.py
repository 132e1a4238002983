"""`--help` of every command: complete, readable, and printed without importing torch."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from cyclopts import App

from transept.cli.app import app

PRINT_ALL = """
import json, os, sys, tempfile

import cyclopts.help, docstring_parser, rich.markdown, rich.syntax  # by every help, so once

import transept.cli.app

def print_help(command, *widths):
    pages = []
    for columns in widths:
        os.environ["COLUMNS"] = columns
        with tempfile.TemporaryFile() as out:
            os.dup2(out.fileno(), 1)
            try:
                transept.cli.app.main([*command.split(), "--help"])
            except SystemExit as end:
                assert end.code == 0
            out.seek(0)
            pages.append(out.read().decode())
    heavy = {"torch", "numpy", "sentencepiece"} & set(sys.modules)
    return dict(zip(["narrow", "wide"], pages), command=command, heavy=sorted(heavy))

answers = os.dup(1)
for command in sys.argv[3:]:
    if os.fork() == 0:
        answer = print_help(command, *sys.argv[1:3])
        os.write(answers, (json.dumps(answer) + chr(10)).encode())
        os._exit(0)
    os.wait()
"""
"""A fork for each command: printing its help imports it, and changes the app."""


class Help(NamedTuple):
    """What `--help` prints on a narrow and on a wide terminal, and the slow modules it imports."""

    narrow: str
    wide: str
    heavy: list[str]


Helps = dict[tuple[str, ...], Help]


def commands(parent: App, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield prefix
    for name in parent:
        if not name.startswith("-"):
            yield from commands(parent[name], (*prefix, name))


COMMANDS = list(commands(app))


@pytest.fixture(scope="module")
def helps() -> Helps:
    words = [sys.executable, "-c", PRINT_ALL, "80", "200", *map(" ".join, COMMANDS)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(COMMANDS), done.stderr
    return {
        tuple(one["command"].split()): Help(one["narrow"], one["wide"], one["heavy"])
        for one in answers
    }


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_readable_and_does_not_import_torch(command: tuple[str, ...], helps: Helps) -> None:
    text, _, heavy = helps[command]
    assert not heavy
    assert "Usage: transept" in text
    # Defaults are shown as they would be typed.
    assert not re.search(r"\[default:\s+(True|False|None|\(|')", text)
    # A line that ends inside of `…` in a docstring leaves its indentation there.
    assert not re.search("[a-z] {3,}[a-z]", text)


@pytest.mark.parametrize("command", COMMANDS[1:], ids=" ".join)
def test_a_command_is_listed_with_the_first_line_of_its_own_help(
    command: tuple[str, ...], helps: Helps
) -> None:
    def shown(command: tuple[str, ...]) -> str:
        return " ".join(helps[command].wide.split())

    node = app
    for name in command:
        node = node[name]
    documented = node.help if node.default_command is None else node.default_command.__doc__
    assert documented
    first, _, rest = documented.partition("\n")
    assert first in shown(command[:-1])
    own = shown(command)
    assert first in own
    prose = rest.partition("Args:")[0].split()
    assert " ".join(prose).replace("`", "") in own


def test_only_families_of_commands_point_to_their_commands_help(helps: Helps) -> None:
    assert "Each command has its own --help" in helps[("data",)].narrow
    own = helps[("train",)].narrow
    assert "--allow-change" in own
    assert own.startswith("Usage: transept train [OPTIONS] CONFIG [ARGS...]\n\n")
    assert "Each command has its own --help" not in own


def boxes(page: str) -> dict[str, list[str]]:
    """The lines of each box of a help page, by its title."""
    found: dict[str, list[str]] = {}
    for row in page.splitlines():
        if title := re.match("╭─ (.+?) ─", row):
            lines = found.setdefault(title[1], [])
        elif row.startswith("│"):
            lines.append(row.strip("│ "))
    return found


def test_commands_are_listed_in_groups_and_in_the_order_of_work(helps: Helps) -> None:
    root = boxes(helps[()].narrow)
    listed = {title: [line.split()[0] for line in lines] for title, lines in root.items()}
    assert listed == {
        "Use a model": [
            "translate",
            "serve",
            "parse",
            "evalb",
            "score",
            "evaluate",
            "tune",
            "visualize",
            "info",
        ],
        "Train a model": ["demo", "recipe", "data", "tokenizer", "train", "average"],
        "Convert a model": ["import", "export"],
        "Help": ["--completion", "--help", "--version"],
    }


def test_there_are_at_most_twenty_commands() -> None:
    families = {command[:-1] for command in COMMANDS}
    assert len({*COMMANDS} - families) <= 20


@pytest.mark.parametrize("family", ["", "recipe", "data", "tokenizer"])
def test_a_command_is_listed_on_one_line_of_a_small_terminal(family: str, helps: Helps) -> None:
    parent = app[family] if family else app
    # A second line would begin with a word of its own.
    page = boxes(helps[tuple(family.split())].narrow)
    first = [line.split()[0] for lines in page.values() for line in lines]
    assert sorted(first) == sorted({*parent} - {"-h"} - ({"--help", "--version"} - {*first}))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_box_is_too_long_to_be_read(command: tuple[str, ...], helps: Helps) -> None:
    for title, lines in boxes(helps[command].wide).items():
        options = [line for line in lines if line.lstrip("* ").startswith("-")]
        assert len(options) <= 12, title
