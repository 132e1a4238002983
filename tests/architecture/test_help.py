"""`--help` of every command: quick, and without waiting for torch."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from cyclopts import App

from transept.cli.app import app

WITHOUT_TORCH = """
import sys
from transept.cli.app import app
app(sys.argv[1:], result_action="return_value")
heavy = {"torch", "numpy", "sentencepiece"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""


def commands(parent: App, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield prefix
    for name in parent:
        if not name.startswith("-"):
            yield from commands(parent[name], (*prefix, name))


@pytest.mark.parametrize("command", list(commands(app)), ids=" ".join)
def test_help_is_quick_and_torch_free(command: tuple[str, ...]) -> None:
    words = [sys.executable, "-c", WITHOUT_TORCH, *command, "--help"]
    times = []
    for _ in range(3):
        start = time.monotonic()
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        times.append(time.monotonic() - start)
        assert result.returncode == 0, result.stderr
        assert "Usage: transept" in result.stdout
    # The best of three: other work on the machine is not our delay.
    assert min(times) < 0.5


def test_every_command_says_in_the_list_what_its_own_help_says() -> None:
    """The line given at registration is the first line of the command's docstring."""
    for command in commands(app):
        if command:
            spec = app
            for name in command[:-1]:
                spec = spec[name]
            listed = subprocess.run(
                [sys.executable, "-m", "transept", *command[:-1], "--help"],
                capture_output=True, text=True, check=True, env=os.environ | {"COLUMNS": "200"},
            ).stdout  # fmt: skip
            function = spec[command[-1]].default_command
            if function is not None:
                assert function.__doc__ is not None
                assert function.__doc__.splitlines()[0] in " ".join(listed.split())
