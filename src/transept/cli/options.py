"""Which options of a group were given."""

from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


def remembers_given(group: type[T]) -> type[T]:
    """Let a dataclass of options remember which of them were given, for `given` to return.

    A value alone does not show it: `--beam-size 4` asks for a beam, though 4 is the default.
    """
    make = group.__init__

    @wraps(make)
    def remember(self: T, **options: Any) -> None:
        # Before the dataclass checks its values, since the check may ask which were given.
        object.__setattr__(self, "_given", options)
        make(self, **options)

    group.__init__ = remember  # type: ignore[assignment]
    return group


def given(group: object) -> dict[str, Any]:
    """The options of a group that were given, with their values."""
    options: dict[str, Any] = getattr(group, "_given", {})
    return dict(options)
