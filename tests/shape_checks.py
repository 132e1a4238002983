"""Assertions from signatures: beartype checks types, and jaxtyping the shapes of a signature.

jaxtyping's import hook decorates every function. Its own decorator binds the arguments of each call
and checks them twice, which takes a third of the time of a training. Here, a call opens a scope in
which each axis has one size, and beartype checks each argument and the result once.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, get_args

import jaxtyping

_jaxtyped: Callable[..., Any] = jaxtyping.jaxtyped


def check_signatures(modules: Sequence[str]) -> None:
    """Check the arguments and results of the functions in these modules, once they are imported."""
    jaxtyping.jaxtyped = checked  # type: ignore[assignment]  # the name that the hook's code calls
    jaxtyping.install_import_hook(modules, "beartype.beartype")


def checked(*, typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator with the arguments of jaxtyping's."""

    def decorate(decorated: Any) -> Any:
        if inspect.isfunction(decorated):
            return _with_checks(decorated, typechecker)
        if is_dataclass(decorated):
            kind: Any = decorated
            kind.__init__ = _with_checks(kind.__init__, typechecker)
            return kind
        return _jaxtyped(decorated, typechecker=typechecker)

    return decorate


def _with_checks(function: Any, typechecker: Callable[[Any], Any]) -> Any:
    if not _has_shapes(function):
        return typechecker(function)
    if inspect.isgeneratorfunction(function):  # its body runs after the call
        return _jaxtyped(function, typechecker=typechecker)
    checked = typechecker(function)
    scope = _jaxtyped("context")

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return checked(*args, **kwargs)

    return call


def _has_shapes(function: Any) -> bool:
    return any(map(_is_shape, getattr(function, "__annotations__", {}).values()))


def _is_shape(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return any(map(_is_shape, get_args(annotation)))
