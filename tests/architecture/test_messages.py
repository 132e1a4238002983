"""Library code names arguments, and the command line turns them into its options."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from transept.errors import Argument, ConfigError, DataError

PACKAGE = Path(__file__).parents[2] / "src" / "transept"
FACES = ("cli", "apps", "formats/commands.py")
"""They print messages, in which options may be named."""
OF_OTHERS = {"--nproc-per-node", "--max-restarts", "--signal"}
"""Options of torchrun and Slurm."""
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def texts(tree: ast.Module) -> Iterator[str]:
    """The strings of a module, without its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree)
                  if isinstance(node, documented)}  # fmt: skip
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or node.value in docstrings:
            continue
        if isinstance(node.value, str):
            yield node.value


def test_no_message_of_the_library_names_an_option_of_a_command() -> None:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(FACES):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            options = {option for text in texts(tree) for option in OPTION.findall(text)}
            found[name] = sorted(options - OF_OTHERS)
    assert {name: options for name, options in found.items() if options} == {}


def test_an_argument_in_a_message_is_rendered_by_the_caller() -> None:
    for kind in (ConfigError, DataError):
        error = kind("x exists; choose another ", Argument("max_ratio"))
        assert str(error) == "x exists; choose another `max_ratio`"
        assert error.message(lambda name: f"--{name}") == "x exists; choose another --max_ratio"
