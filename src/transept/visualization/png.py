"""A picture as PNG, on a light ground, by matplotlib."""

import warnings
from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from transept.errors import TranseptError
from transept.visualization.colours import LIGHT, colour_of, is_dashed
from transept.visualization.pictures import (
    FONT_SIZE,
    LINE_WIDTH,
    TITLE_SCALE,
    Cell,
    Frame,
    Label,
    Line,
    Panel,
    Picture,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 72 / 96
"""Points in a CSS pixel."""
DASHES = (0, (7 * POINTS, 4 * POINTS))
SHARPNESS = 2.0
"""Pixels of the image in a CSS pixel."""


def to_png(picture: Picture) -> bytes:
    """The picture as the bytes of a PNG, of the same geometry as the SVG."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TranseptError(
            "PNG needs matplotlib, which is not installed: `pip install 'transept[plots]'`, "
            "or write .svg or .html, which need nothing"
        ) from error
    size = (picture.width / 96, picture.height / 96)
    figure = Figure(figsize=size, dpi=96 * SHARPNESS, facecolor=LIGHT.paper)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.set_axis_off()
    for panel in picture.panels:
        _draw(axes, panel)
    image, about = BytesIO(), {"Title": picture.title, "Software": "transept"}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Glyph ")
        try:
            figure.savefig(image, format="png", metadata=about)
        except UserWarning as missing:
            glyph = str(missing).partition(" missing")[0]
            raise TranseptError(
                f"PNG: no font here can write it ({glyph}); install one, such as Noto Sans CJK, "
                "or write .svg or .html, which use the reader's fonts"
            ) from missing
    return image.getvalue()


def _draw(axes: "Axes", panel: Panel) -> None:
    _draw_lines(axes, panel)
    _draw_boxes(axes, panel)
    for shape in panel.shapes:
        if isinstance(shape, Label):
            _write(axes, panel, shape)


def _draw_lines(axes: "Axes", panel: Panel) -> None:
    from matplotlib import rc_context
    from matplotlib.collections import LineCollection

    lines = [shape for shape in panel.shapes if isinstance(shape, Line)]
    x, y = panel.x, panel.y
    # Dashes as in the SVG: not longer where a line is wider.
    with rc_context({"lines.scale_dashes": False}):
        collection = LineCollection(
            [((x + one.x1, y + one.y1), (x + one.x2, y + one.y2)) for one in lines],
            colors=[(LIGHT.heads[colour_of(one.place.head)], one.opacity) for one in lines],
            linewidths=[LINE_WIDTH * POINTS * one.weight for one in lines],
            linestyles=[DASHES if is_dashed(one.place.head) else "-" for one in lines],
        )
    axes.add_collection(collection)


def _draw_boxes(axes: "Axes", panel: Panel) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    boxes = [shape for shape in panel.shapes if isinstance(shape, Cell | Frame)]
    axes.add_collection(
        PatchCollection(
            [Rectangle((panel.x + b.x, panel.y + b.y), b.width, b.height) for b in boxes],
            facecolors=[_fill(box) for box in boxes],
            edgecolors=[LIGHT.faint if isinstance(box, Frame) else "none" for box in boxes],
            linewidths=0.75 * POINTS,
        )
    )


def _fill(box: Cell | Frame) -> tuple[str, float] | str:
    if isinstance(box, Frame):
        return "none"
    colour = LIGHT.heat if box.head is None else LIGHT.heads[colour_of(box.head)]
    return colour, min(box.weight / box.full, 1.0)


def _write(axes: "Axes", panel: Panel, label: Label) -> None:
    size = FONT_SIZE * POINTS * (TITLE_SCALE if label.style == "title" else 1)
    colour = LIGHT.faint if label.style == "faint" else LIGHT.ink
    # From the middle of the letters down to their base, as in the SVG.
    base = 0.35 * size / POINTS
    x, y = panel.x + label.x, panel.y + label.y
    axes.text(
        x + base if label.upright else x,
        y if label.upright else y + base,
        label.text,
        rotation=90 if label.upright else 0,
        rotation_mode="anchor",
        ha={"start": "left", "middle": "center", "end": "right"}[label.anchor],
        va="baseline",
        color=colour if label.head is None else LIGHT.heads[colour_of(label.head)],
        fontsize=size,
        fontweight="bold" if label.style in ("title", "strong") else "normal",
        fontfamily=_fonts(),
        parse_math=False,
    )


@cache
def _fonts() -> Sequence[str]:
    """DejaVu Sans, which comes with matplotlib, and installed fonts for scripts that it lacks."""
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    others = ("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Noto Sans Devanagari")
    return ["DejaVu Sans", *(name for name in others if name in there)]
