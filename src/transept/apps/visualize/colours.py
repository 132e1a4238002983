"""The colours of all pictures, on paper and on a dark screen."""

from typing import NamedTuple


class Colours(NamedTuple):
    """What things are drawn in."""

    paper: str
    ink: str
    faint: str
    """For words that are not the point."""
    heat: str
    """For the largest weight of a heat map; a weight of 0 is left as paper."""
    heads: tuple[str, ...]


# The colours of Okabe and Ito, which the colour-blind can tell apart, but with a darker yellow, and
# with violet and grey instead of black. On a dark screen they are lighter.
LIGHT = Colours(
    paper="#ffffff",
    ink="#1b1f24",
    faint="#666e78",
    heat="#08306b",
    heads=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7f6fd1", "#7d7d7d"),
)
DARK = Colours(
    paper="#15181c",
    ink="#e8eaed",
    faint="#98a0aa",
    heat="#a6d3f5",
    heads=("#4da6e8", "#ff8a42", "#2fc79a", "#ec9cc8", "#e3bb3c", "#9bd8ff", "#b0a2ff", "#b4b4b4"),
)
N_COLOURS = len(LIGHT.heads)


def colour_of(head: int) -> int:
    """The number of a head's colour, counted from 0: the same in every picture."""
    return head % N_COLOURS


def is_dashed(head: int) -> bool:
    """Whether a head's lines are dashed, because an earlier head has the same colour."""
    return head >= N_COLOURS
