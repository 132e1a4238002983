"""The colours of the site and its charts in both themes, as docs/internals/style.md has them."""

from typing import Final, NamedTuple


class Palette(NamedTuple):
    """The colours of one theme."""

    paper: str
    surface: str
    ink: str
    quiet: str
    edge: str
    accent: str
    series: tuple[str, ...]


LIGHT: Final = Palette(
    paper="#ffffff",
    surface="#f6f7f9",
    ink="#1b1f24",
    quiet="#666e78",
    edge="#dfe3e8",
    accent="#0072b2",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7f6fd1", "#7d7d7d"),
)
DARK: Final = Palette(
    paper="#15181c",
    surface="#1b1f24",
    ink="#e8eaed",
    quiet="#98a0aa",
    edge="#343a42",
    accent="#4da6e8",
    series=("#4da6e8", "#ff8a42", "#2fc79a", "#ec9cc8", "#e3bb3c", "#9bd8ff", "#b0a2ff", "#b4b4b4"),
)
