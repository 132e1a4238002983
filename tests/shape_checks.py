"""Assertions from signatures: jaxtyping checks shapes where a signature has them.

jaxtyping's import hook decorates every function. Its decorator binds the arguments of each call,
which takes most of the time of a small search. beartype alone checks all other types.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, get_args

import jaxtyping

_jaxtyped: Callable[..., Any] = jaxtyping.jaxtyped


def check_signatures(modules: Sequence[str]) -> None:
    """Check the arguments and results of the functions in these modules, once they are imported."""
    jaxtyping.jaxtyped = _checked  # type: ignore[assignment]  # the name that the hook's code calls
    jaxtyping.install_import_hook(modules, "beartype.beartype")


def _checked(*, typechecker: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(decorated: Any) -> Any:
        kind: Any = decorated if is_dataclass(decorated) else None
        if inspect.isfunction(decorated) and not _has_shapes(decorated):
            return typechecker(decorated)
        if kind and not _has_shapes(kind.__init__):
            kind.__init__ = typechecker(kind.__init__)
            return kind
        return _jaxtyped(decorated, typechecker=typechecker)

    return decorate


def _has_shapes(function: Any) -> bool:
    return any(map(_is_shape, getattr(function, "__annotations__", {}).values()))


def _is_shape(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return any(map(_is_shape, get_args(annotation)))
