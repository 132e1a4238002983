"""What a picture is made of: a few shapes, which every format can draw. Lengths are CSS pixels."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

FONT_SIZE = 13.0
LETTER = 0.6 * FONT_SIZE
"""The width of a letter, on the wide side: fonts differ."""

MARGIN = 20.0
TITLE_HEIGHT = 34.0
TITLE_SCALE = 1.25
"""How much larger than words a title is."""
LINE_WIDTH = 5.0
"""The width of a line whose weight is 1."""

Style = Literal["title", "note", "word", "faint", "strong"]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Place:
    """Whose weight is drawn, all counted from 0."""

    head: int
    query: int
    key: int


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A weight as a line: the larger, the wider."""

    x1: float
    y1: float
    x2: float
    y2: float
    weight: float
    place: Place

    @property
    def opacity(self) -> float:
        """The width shows the weight; the opacity besides lets strong lines stand out."""
        # Weights of the parts of a word, summed, may exceed 1 by a rounding error.
        return min(0.4 + 0.6 * self.weight, 1.0)


@dataclass(frozen=True, slots=True)
class Cell:
    """A weight as a box: the larger, the more opaque. One of `full` is opaque."""

    x: float
    y: float
    width: float
    height: float
    weight: float
    place: Place | None
    """None in the scale, which shows no weight of the model."""
    paint: Literal["head", "heat"] = "head"
    full: float = 1.0

    @property
    def head(self) -> int | None:
        """The head whose colour it has; None: the colour of heat."""
        return self.place.head if self.place is not None and self.paint == "head" else None


@dataclass(frozen=True, slots=True)
class Frame:
    """The edge of a heat map."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """A word, or another text, on one line."""

    x: float
    y: float
    """Of the middle of its letters' height."""
    text: str
    style: Style = "word"
    anchor: Anchor = "middle"
    upright: bool = False
    """Turned by a quarter, so that it reads upwards."""
    head: int | None = None
    """The head whose colour it has, if it has one."""


Shape = DrawnLine | Cell | Frame | Label


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a picture with a meaning of its own."""

    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...]
    x: float = 0.0
    y: float = 0.0

    def at(self, x: float, y: float) -> "Panel":
        """The same panel at another place."""
        return replace(self, x=x, y=y)


@dataclass(frozen=True, slots=True)
class Picture:
    """Panels on one sheet."""

    title: str
    description: str
    """For those who cannot see it."""
    width: float
    height: float
    panels: tuple[Panel, ...]


def visible(pieces: Sequence[str]) -> list[str]:
    """Pieces as they are shown: with a small dot for the space, as `▁` would catch the eye."""
    return [piece.replace("▁", "·") for piece in pieces]


def text_width(text: str) -> float:
    """About how wide a text is."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return (len(text) - wide) * LETTER + wide * FONT_SIZE


def widest(texts: Sequence[str]) -> float:
    """About how wide the widest of some texts is."""
    return max(map(text_width, texts), default=0.0)


def arranged(title: str, description: str, rows: Sequence[Sequence[Panel]]) -> Picture:
    """A picture with its title, and under it rows of panels, each row in the middle."""
    widths = [sum(panel.width + MARGIN for panel in row) - MARGIN for row in rows]
    width = max([*widths, TITLE_SCALE * text_width(title)])
    heading = Label(width / 2, TITLE_HEIGHT / 4, title, style="title")
    placed = [Panel("", width, TITLE_HEIGHT, (heading,)).at(MARGIN, MARGIN)]
    y = MARGIN + TITLE_HEIGHT
    for row, own in zip(rows, widths, strict=True):
        x = MARGIN + (width - own) / 2
        for panel in row:
            placed.append(panel.at(x, y))
            x += panel.width + MARGIN
        y += max(panel.height for panel in row) + MARGIN
    return Picture(title, description, width + 2 * MARGIN, y, tuple(placed))
