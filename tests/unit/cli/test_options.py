"""Names that other toolkits have for our options: each leads to one that there is."""

from dataclasses import dataclass

import pytest
from cyclopts import App

from transept.cli.app import app
from transept.cli.options import OTHER_NAMES, given, likely, remembers_given


def names_of_commands(parent: App) -> list[list[str]]:
    """The options and arguments of each command."""
    found = []
    for name in parent:
        if name.startswith("-"):
            continue
        if parent[name].default_command is None:
            found += names_of_commands(parent[name])
        else:
            arguments = parent[name].assemble_argument_collection()
            found.append([one for argument in arguments for one in argument.names])
    return found


COMMANDS = names_of_commands(app)


@pytest.mark.parametrize("ours", OTHER_NAMES)
def test_other_names_are_of_an_option_that_some_command_has(ours: str) -> None:
    name = ours if ours.isupper() else f"--{ours}"
    having = [names for names in COMMANDS if name in names]
    assert having
    for other in OTHER_NAMES[ours].split():
        # And each of them is of use: some command would not know it.
        assert any(likely(f"--{other}", names) == name for names in having), other


@pytest.mark.parametrize(
    ("option", "command", "meant"),
    [
        ("--SRC", ["--source", "--target"], "--source"),
        ("--beam_sise", ["--beam-size", "--model"], "--beam-size"),
        ("--outfile=x", ["--input", "--output", "-o"], "--output"),
        ("--hyp", ["--hypothesis", "--reference"], "--hypothesis"),
        ("--source", ["--source-language", "--input"], "--input"),
        ("--max-len", ["--max-length-factor", "--max-length-extra"], "--max-length-extra"),
        ("--threads", ["--stream", "--input"], None),
        ("-o", ["--output"], None),
        ("--input", ["FILE", "--ids"], "FILE"),
        ("--trees", ["TREES", "--copies"], "TREES"),
    ],
)
def test_what_is_likely_meant(option: str, command: list[str], meant: str | None) -> None:
    assert likely(option, command) == meant


@remembers_given
@dataclass(frozen=True, kw_only=True)
class Beam:
    size: int = 4
    alpha: float = 0.6


def test_given_returns_an_option_that_was_given_its_default() -> None:
    assert given(Beam(size=4)) == {"size": 4}
    assert given(Beam()) == {}
    assert Beam(size=4) == Beam()
