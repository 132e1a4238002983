"""How much room there is. A CUDA graph knows one size only: there are few of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """What there is room for."""

    slots: int
    """Sentences at once."""
    width: int
    """W, the hypotheses of each that are kept alive."""
    places: int
    """Tokens of an output."""
    source: int
    """Tokens of a source."""


def room(length: int, least: int) -> int:
    """The least, twice that, and so on until it is enough."""
    size = least
    while size < length:
        size *= 2
    return size
