"""Heat maps of heads in a grid, as in the Annotated Transformer: one colour scale for all."""

import math
from collections.abc import Sequence

from transept.api.attention import AttentionMap
from transept.apps.visualize.pictures import (
    FONT_SIZE,
    LETTER,
    MARGIN,
    Cell,
    Frame,
    Label,
    Panel,
    Place,
    Shape,
    text_width,
    visible,
    widest,
)

HEADING, GAP = 24.0, 6.0
CELL = 1.45 * FONT_SIZE
MOST_COLUMNS = 4
WIDEST_GRID = 1500.0
SCALE_STEPS = 24


def draw_heat_maps(attention: AttentionMap, layer: int, heads: Sequence[int]) -> list[list[Panel]]:
    """Rows of maps, one a head, and below them what the colours mean. All counted from 0."""
    full = float(attention.weights[layer, list(heads)].max())
    maps = [_draw(attention, layer, head, full) for head in heads]
    columns = _columns(len(maps), maps[0].width)
    rows = [maps[start : start + columns] for start in range(0, len(maps), columns)]
    return [*rows, [_scale(full)]]


def _columns(n_maps: int, width: float) -> int:
    fitting = max(1, int((WIDEST_GRID + MARGIN) // (width + MARGIN)))
    most = min(MOST_COLUMNS, fitting, n_maps)
    # Rows of the same length, where there can be: 3 and 3 instead of 4 and 2.
    return math.ceil(n_maps / math.ceil(n_maps / most))


def _draw(attention: AttentionMap, layer: int, head: int, full: float) -> Panel:
    """One head: queries down, keys across."""
    queries, keys = visible(attention.queries.pieces), visible(attention.keys.pieces)
    left, top = widest(queries) + GAP, HEADING
    width, height = len(keys) * CELL, len(queries) * CELL
    name = f"layer {layer + 1}, head {head + 1}"
    shapes: list[Shape] = [Label(left + width / 2, HEADING / 3, name, "note")]
    for query, row in enumerate(attention.weights[layer, head].tolist()):
        y = top + query * CELL
        shapes.append(Label(left - GAP, y + CELL / 2, queries[query], anchor="end"))
        for key, weight in enumerate(row):
            place = Place(head, query, key)
            shapes.append(Cell(left + key * CELL, y, CELL, CELL, weight, place, "heat", full))
    shapes.append(Frame(left, top, width, height))
    for key, word in enumerate(keys):
        x = left + (key + 0.5) * CELL
        shapes.append(Label(x, top + height + GAP, word, anchor="end", upright=True))
    return Panel(name.capitalize(), left + width, top + height + GAP + widest(keys), (*shapes,))


def _scale(full: float) -> Panel:
    """Steps from nothing to the largest weight that is drawn."""
    low, high, step, height = "weight 0", f"{full:.2f}", 6.0, 0.8 * FONT_SIZE
    length = SCALE_STEPS * step
    x = text_width(low) + LETTER
    shapes: list[Shape] = [Label(0, height / 2, low, "note", "start")]
    for number in range(SCALE_STEPS):
        weight = full * (number + 0.5) / SCALE_STEPS
        shapes.append(Cell(x + number * step, 0, step, height, weight, None, "heat", full))
    shapes.append(Frame(x, 0, length, height))
    shapes.append(Label(x + length + LETTER, height / 2, high, "note", "start"))
    return Panel("Scale", x + length + LETTER + text_width(high), height, (*shapes,))
