"""Library code names arguments, and the command line turns them into its options."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from transept.errors import Argument, ConfigError, DataError

PACKAGE = Path(__file__).parents[2] / "src" / "transept"
FACES = ("cli/", "apps/convert/commands.py", "apps/parse/evalb.py", "apps/recipes/demo")
FACES_OF_APPS = {"command.py", "view.py"}
"""Commands and what they print, in which options may be named."""
STYLE_SHEETS = {"apps/visualize/html.py"}
"""Here two dashes begin a variable."""
OF_OTHERS = {"--nproc-per-node", "--max-restarts", "--signal", "--always", "--dirty", "--abbrev"}
"""Options of torchrun, Slurm and git."""
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def texts(tree: ast.Module) -> Iterator[str]:
    """The strings of a module, without docstrings: those are statements by themselves."""
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node in docstrings:
            continue
        if isinstance(node.value, str):
            yield node.value


def test_no_message_of_the_library_names_an_option_of_a_command() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not (name.startswith(FACES) or path.name in FACES_OF_APPS or name in STYLE_SHEETS):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            options = {option for text in texts(tree) for option in OPTION.findall(text)}
            found[name] = sorted(options - OF_OTHERS)
    assert {name: options for name, options in found.items() if options} == {}


def test_an_argument_in_a_message_is_rendered_by_the_caller() -> None:
    for kind in (ConfigError, DataError):
        error = kind("x exists; choose another ", Argument("max_ratio"))
        assert str(error) == "x exists; choose another `max_ratio`"
        assert error.message(lambda name: f"--{name}") == "x exists; choose another --max_ratio"
