"""The fields of a class with the strings below them, and types and defaults as text."""

import ast
import inspect
import textwrap
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

NAMES = {int: "integer", float: "number", str: "text", bool: "true or false", Path: "path"}


class Field(NamedTuple):
    """A field of a class, as its source has it."""

    name: str
    annotation: str
    default: str
    """Empty if the field has none."""
    doc: str
    """The string below the field, as one line."""


def fields_of(cls: type) -> Iterator[Field]:
    """The public annotated fields in the body of a class."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(node, ast.ClassDef)
    body = node.body
    for field, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if field.target.id.startswith("_"):
            continue
        default = "" if field.value is None else ast.unparse(field.value)
        doc = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            doc = " ".join(inspect.cleandoc(str(after.value.value)).split())
        yield Field(field.target.id, ast.unparse(field.annotation), default, doc)


def docs_of(cls: type) -> dict[str, str]:
    """The string below each field of a class, those of its base classes too."""
    classes = [base for base in reversed(cls.__mro__) if base.__module__.startswith("transept")]
    return {field.name: field.doc for base in classes for field in fields_of(base)}


def type_name(hint: Any) -> str:
    """A type as a reader of a manual would say it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return type_name(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join(type_name(one) for one in arguments if one is not type(None))
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"{type_name(arguments[0])}, repeatable"
    if origin is tuple:
        return " ".join(map(type_name, arguments))
    return NAMES.get(hint, getattr(hint, "__name__", str(hint)))


def cell(text: str) -> str:
    """Text that fits into a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
