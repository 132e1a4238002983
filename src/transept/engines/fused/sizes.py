"""The sizes of a workspace. Each needs CUDA graphs of its own, so there are only a few sizes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a workspace has room for."""

    slots: int
    """Sentences that are decoded at once."""
    width: int
    """W, the live hypotheses of each sentence."""
    places: int
    """Tokens of the longest output."""
    source: int
    """Tokens of the longest source."""


def room(length: int, least: int) -> int:
    """Room for `length`: `least`, doubled until it is enough."""
    size = least
    while size < length:
        size *= 2
    return size
