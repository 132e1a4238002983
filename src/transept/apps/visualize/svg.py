"""A picture as SVG: small, text as text, for people and programs, in light and dark."""

import re
from functools import singledispatch
from html import escape

from transept.apps.visualize.colours import DARK, LIGHT, Colours, colour_of, is_dashed
from transept.apps.visualize.pictures import (
    FONT_SIZE,
    LINE_WIDTH,
    TITLE_SCALE,
    Cell,
    DrawnLine,
    Frame,
    Label,
    Panel,
    Picture,
    Place,
)

# XML has no way to write these.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def to_svg(picture: Picture) -> str:
    """The picture as an SVG document.

    Each line and cell says whose weight it is: `data-weight`, and from 1, `data-head`,
    `data-query` and `data-key`.
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
        f".frame{{fill:none;stroke-width:.75}}{_ground(LIGHT)}"
        f"@media(prefers-color-scheme:dark){{{_ground(DARK)}}}"
    )


def _ground(colours: Colours) -> str:
    heads = "".join(
        f".h{number}{{stroke:{colour}}}.f{number}{{fill:{colour}}}"
        for number, colour in enumerate(colours.heads)
    )
    return (
        f".paper{{fill:{colours.paper}}}.ink{{fill:{colours.ink}}}.faint{{fill:{colours.faint}}}"
        f".heat{{fill:{colours.heat}}}.frame{{stroke:{colours.faint}}}{heads}"
    )


def _panel(panel: Panel) -> str:
    label = f' role="group" aria-label="{_text(panel.title)}"' if panel.title else ""
    shapes = "\n".join(map(_draw, panel.shapes))
    place = f"translate({_number(panel.x)} {_number(panel.y)})"
    return f'<g transform="{place}"{label}>\n{shapes}\n</g>'


@singledispatch
def _draw(shape: object) -> str:
    raise NotImplementedError(type(shape))


@_draw.register
def _(line: DrawnLine) -> str:
    ends = zip(("x1", "y1", "x2", "y2"), (line.x1, line.y1, line.x2, line.y2), strict=True)
    where = " ".join(f'{name}="{_number(value)}"' for name, value in ends)
    dashed = " dashed" if is_dashed(line.place.head) else ""
    return (
        f'<line class="h{colour_of(line.place.head)}{dashed}" {where} '
        f'stroke-width="{LINE_WIDTH * line.weight:.3f}" '
        f'stroke-opacity="{line.opacity:.2f}"{_data(line.weight, line.place)}/>'
    )


@_draw.register
def _(cell: Cell) -> str:
    paint = "heat" if cell.head is None else f"f{colour_of(cell.head)}"
    data = "" if cell.place is None else _data(cell.weight, cell.place)
    return (
        f'<rect class="{paint}" {_box(cell)} fill-opacity="{cell.weight / cell.full:.3f}"{data}/>'
    )


@_draw.register
def _(frame: Frame) -> str:
    return f'<rect class="frame" {_box(frame)}/>'


@_draw.register
def _(label: Label) -> str:
    colour = "faint" if label.style == "faint" else "ink"
    if label.head is not None:
        colour = f"f{colour_of(label.head)}"
    style = f" {label.style}" if label.style in ("title", "strong") else ""
    x, y = _number(label.x), _number(label.y)
    turned = f' transform="rotate(-90 {x} {y})"' if label.upright else ""
    anchor = "" if label.anchor == "start" else f' text-anchor="{label.anchor}"'
    # An offset, as not everything that reads SVG knows the names of baselines.
    place = f'x="{x}" y="{y}" dy=".35em"{anchor}{turned}'
    return f'<text class="{colour}{style}" {place}>{_text(label.text)}</text>'


def _data(weight: float, place: Place) -> str:
    return (
        f' data-head="{place.head + 1}" data-query="{place.query + 1}" '
        f'data-key="{place.key + 1}" data-weight="{weight:.4f}"'
    )


def _box(box: Cell | Frame) -> str:
    names = zip(("x", "y", "width", "height"), (box.x, box.y, box.width, box.height), strict=True)
    return " ".join(f'{name}="{_number(value)}"' for name, value in names)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    return escape(_UNWRITABLE.sub("\ufffd", text))
