"""Every field of every config says what it means."""

import ast
import dataclasses
import inspect
import typing
from collections.abc import Iterator

import pytest

from transept.experiment import Experiment


def schemas(schema: type) -> Iterator[type]:
    yield schema
    for hint in typing.get_type_hints(schema).values():
        if dataclasses.is_dataclass(hint):
            yield from schemas(typing.cast(type, hint))


@pytest.mark.parametrize("schema", list(schemas(Experiment)), ids=lambda schema: schema.__name__)
def test_each_field_is_followed_by_its_meaning(schema: type) -> None:
    (definition,) = ast.parse(inspect.getsource(schema)).body
    assert isinstance(definition, ast.ClassDef)
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign):
            documented = isinstance(following, ast.Expr) and isinstance(
                following.value, ast.Constant
            )
            assert documented, ast.unparse(statement.target)
