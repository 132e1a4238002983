"""Pictures of a few basic shapes, and their SVG writer, with light and dark colours.

`visualize` draws attention with them, and `parse` draws trees. Lengths are in CSS pixels.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal, NamedTuple

FONT_SIZE = 13.0
LETTER = 0.6 * FONT_SIZE
"""The estimated width of a letter. It is generous because fonts differ."""
MARGIN = 20.0
TITLE_HEIGHT = 34.0
TITLE_SCALE = 1.25
"""The font size of a title relative to words."""
LINE_WIDTH = 5.0
"""The width of a line whose weight is 1."""

Style = Literal["title", "note", "word", "faint", "strong"]
Anchor = Literal["start", "middle", "end"]
# Characters that XML cannot represent.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Colours(NamedTuple):
    """A colour scheme."""

    paper: str
    ink: str
    faint: str
    """For words that are not selected, and for edges."""
    heat: str
    """The largest weight of a heat map. A weight of 0 has the colour of the paper."""
    heads: tuple[str, ...]


# The colour-blind-safe palette of Okabe and Ito, with a darker yellow, and with violet and grey
# instead of black. The dark scheme is lighter.
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
"""Head N reuses the colour of head N - N_COLOURS, with dashed lines."""


class Weight(NamedTuple):
    """An attention weight with its head, query and key, numbered from 0."""

    head: int
    query: int
    key: int
    value: float


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line. Its width shows the weight; without a weight it is thin."""

    x1: float
    y1: float
    x2: float
    y2: float
    weight: Weight | None = None


@dataclass(frozen=True, slots=True)
class Box:
    """A filled box or an outline."""

    x: float
    y: float
    width: float
    height: float
    opacity: float | None = None
    """None: draw only the outline."""
    weight: Weight | None = None
    """The weight that the box shows, if any."""
    head: int | None = None
    """The head whose colour the box has. None: the colour of heat maps."""


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text."""

    x: float
    y: float
    """The vertical middle of the letters."""
    text: str
    style: Style = "word"
    anchor: Anchor = "middle"
    upright: bool = False
    """Rotated by 90 degrees, so that it reads upwards."""
    head: int | None = None
    """The head whose colour the label has, if any."""


Shape = Stroke | Box | Label


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a picture, with its own title."""

    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...]
    x: float = 0.0
    y: float = 0.0

    def at(self, x: float, y: float) -> "Panel":
        """The same panel at another position."""
        return replace(self, x=x, y=y)


@dataclass(frozen=True, slots=True)
class Picture:
    """An arrangement of panels."""

    title: str
    description: str
    """Alternative text for screen readers."""
    width: float
    height: float
    panels: tuple[Panel, ...]


def text_width(text: str) -> float:
    """The approximate width of a text."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text)
    return (len(text) - wide) * LETTER + wide * FONT_SIZE


def arranged(title: str, description: str, rows: Sequence[Sequence[Panel]]) -> Picture:
    """A picture with a title and centred rows of panels below it."""
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


def to_svg(picture: Picture) -> str:
    """The picture as an SVG document.

    A line or box that shows a weight has the attributes `data-weight` and, numbered from 1,
    `data-head`, `data-query` and `data-key`.
    """
    width, height = _number(picture.width), _number(picture.height)
    panels = "\n".join(map(_panel, picture.panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">\n'
        f'<title id="title">{_text(picture.title)}</title>\n'
        f'<desc id="description">{_text(picture.description)}</desc>\n'
        f"<style>{_style()}</style>\n"
        f'<rect class="paper" width="100%" height="100%"/>\n'
        f"{panels}\n</svg>\n"
    )


def _style() -> str:
    return (
        f"text{{font:{FONT_SIZE:g}px 'DejaVu Sans','Helvetica Neue',Arial,sans-serif;"
        "white-space:pre}"
        f".title{{font-size:{TITLE_SCALE * FONT_SIZE:g}px;font-weight:600}}"
        ".strong{font-weight:700}.dashed{stroke-dasharray:7 4}"
        f".edge{{fill:none;stroke-width:.75}}{_ground(LIGHT)}"
        f"@media(prefers-color-scheme:dark){{{_ground(DARK)}}}"
    )


def _ground(colours: Colours) -> str:
    heads = "".join(
        f".h{number}{{stroke:{colour}}}.f{number}{{fill:{colour}}}"
        for number, colour in enumerate(colours.heads)
    )
    return (
        f".paper{{fill:{colours.paper}}}.ink{{fill:{colours.ink}}}.faint{{fill:{colours.faint}}}"
        f".heat{{fill:{colours.heat}}}.edge{{stroke:{colours.faint}}}{heads}"
    )


def _panel(panel: Panel) -> str:
    label = f' role="group" aria-label="{_text(panel.title)}"' if panel.title else ""
    shapes = "\n".join(map(_shape, panel.shapes))
    place = f"translate({_number(panel.x)} {_number(panel.y)})"
    return f'<g transform="{place}"{label}>\n{shapes}\n</g>'


def _shape(shape: Shape) -> str:
    match shape:
        case Stroke():
            return _line(shape)
        case Box():
            return _box(shape)
    return _label(shape)


def _line(line: Stroke) -> str:
    where = _attributes(line, "x1", "y1", "x2", "y2")
    if line.weight is None:
        return f'<line class="edge" {where}/>'
    head, value = line.weight.head, line.weight.value
    dashed = " dashed" if head >= N_COLOURS else ""
    # The width shows the weight. The opacity also emphasizes strong lines. Summed weights of the
    # subwords of a word may exceed 1 by a rounding error.
    opacity = min(0.4 + 0.6 * value, 1.0)
    return (
        f'<line class="h{head % N_COLOURS}{dashed}" {where} '
        f'stroke-width="{LINE_WIDTH * value:.3f}" stroke-opacity="{opacity:.2f}"'
        f"{_data(line.weight)}/>"
    )


def _box(box: Box) -> str:
    where = _attributes(box, "x", "y", "width", "height")
    if box.opacity is None:
        return f'<rect class="edge" {where}/>'
    paint = "heat" if box.head is None else f"f{box.head % N_COLOURS}"
    data = _data(box.weight) if box.weight else ""
    return f'<rect class="{paint}" {where} fill-opacity="{box.opacity:.3f}"{data}/>'


def _label(label: Label) -> str:
    colour = "faint" if label.style == "faint" else "ink"
    if label.head is not None:
        colour = f"f{label.head % N_COLOURS}"
    style = f" {label.style}" if label.style in ("title", "strong") else ""
    x, y = _number(label.x), _number(label.y)
    turned = f' transform="rotate(-90 {x} {y})"' if label.upright else ""
    anchor = "" if label.anchor == "start" else f' text-anchor="{label.anchor}"'
    # An offset, because not all SVG renderers support dominant-baseline.
    place = f'x="{x}" y="{y}" dy=".35em"{anchor}{turned}'
    return f'<text class="{colour}{style}" {place}>{_text(label.text)}</text>'


def _data(weight: Weight) -> str:
    return (
        f' data-head="{weight.head + 1}" data-query="{weight.query + 1}" '
        f'data-key="{weight.key + 1}" data-weight="{weight.value:.4f}"'
    )


def _attributes(shape: Stroke | Box, *names: str) -> str:
    return " ".join(f'{name}="{_number(getattr(shape, name))}"' for name in names)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(_UNWRITABLE.sub("\ufffd", text))
