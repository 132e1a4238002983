"""The API reference, made from the docstrings of the package's modules."""

import ast
import dataclasses
import inspect
import textwrap
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from making.docstrings import to_markdown
from making.fields import fields_of

PAGES: dict[str, tuple[str, list[str]]] = {
    "using": (
        "Using a model",
        [
            "api.models",
            "api.transducer",
            "api.texts",
            "api.parser",
            "api.parses",
            "api.attention",
        ],
    ),
    "network": (
        "The network",
        [
            "model.config",
            "model.transformer",
            "model.attention",
            "model.layers",
            "model.positions",
            "model.packing",
            "engines.native.network",
        ],
    ),
    "training": (
        "Training",
        [
            "experiment",
            "training.config",
            "training.loss",
            "training.update",
            "checkpoint",
        ],
    ),
    "decoding": (
        "Decoding",
        [
            "decoding.config",
            "decoding.beam",
            "decoding.greedy",
            "decoding.step",
        ],
    ),
    "evaluation": (
        "Evaluation",
        [
            "evaluation.conventions",
            "evaluation.scores",
            "evaluation.bleu",
            "evaluation.parse_report",
        ],
    ),
    "data": (
        "Text and data",
        ["text.tokenizer", "text.training", "text.sentences", "text.trees", "data.config"],
    ),
    "tasks": (
        "Tasks",
        ["tasks.toy", "tasks.parsing.linearisation"],
    ),
    "showing": ("Drawing attention", ["apps.visualize.figures", "apps.visualize.terminal"]),
    "errors": ("Config and errors", ["config", "errors"]),
}


def write_reference(folder: Path) -> None:
    """A page for each group of modules, and one that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, modules) in PAGES.items():
        parts = [f"# {title}", *(_module(import_module(f"transept.{m}")) for m in modules)]
        (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    listed = "\n".join(PAGES)
    index = f"{INDEX}\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    (folder / "index.md").write_text(index, encoding="utf-8")


INDEX = """# Python API

`make docs` writes these pages from the docstrings. [Using a model](using.md) has the names that
`import transept` offers. Every layer below it can be used by itself. Names that begin with an
underscore are private.
"""


def _module(module: ModuleType) -> str:
    parts = [f"## `{module.__name__}`", to_markdown(module.__doc__ or "")]
    parts += [_class(v) if isinstance(v, type) else _function(v) for v in _offered(module)]
    return "\n\n".join(parts)


def _offered(module: ModuleType) -> list[Any]:
    """Its own public classes and functions, in the order of the file."""
    own = [
        value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and isinstance(value, type | FunctionType)
        and value.__module__ == module.__name__
        and value.__name__ == name
    ]
    return sorted(own, key=lambda value: inspect.getsourcelines(value)[1])


def _class(cls: type) -> str:
    parts = [f"### `{cls.__name__}`"]
    if isinstance(vars(cls).get("__init__"), FunctionType) and not dataclasses.is_dataclass(cls):
        parts.append(_signature(vars(cls)["__init__"]))
    parts.append(to_markdown(cls.__doc__ or ""))
    parts.append(_fields(cls))
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(function, property) and not name.startswith("_") and function.__doc__:
            parts.append(f"#### `{cls.__name__}.{name}`\n\n{to_markdown(function.__doc__)}")
        elif isinstance(function, FunctionType) and not name.startswith("_") and function.__doc__:
            parts.append(_function(function, f"{cls.__name__}.{name}", "####"))
    return "\n\n".join(part for part in parts if part)


def _function(function: Any, name: str = "", level: str = "###") -> str:
    name = name or function.__name__
    doc = to_markdown(function.__doc__ or "")
    return f"{level} `{name}`\n\n{_signature(function)}\n\n{doc}"


def _signature(function: Any) -> str:
    """The source's own lines, so that shapes are read as they were written."""
    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    lines = source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
    return "```python\n" + "\n".join(lines) + "\n```"


def _fields(cls: type) -> str:
    """The fields of a class, each with the string below it."""
    rows = []
    for field in fields_of(cls):
        value = f" = {field.default}" if field.default else ""
        said = f": {field.doc}" if field.doc else ""
        rows.append(f"- `{field.name}: {field.annotation}{value}`{said}")
    return "\n".join(rows)
