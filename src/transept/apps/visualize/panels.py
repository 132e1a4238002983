"""The panels of a figure: lines between two rows of words, and heat maps.

As in Figures 3 to 5 of the paper, lines connect the queries above with the keys below. The width of
a line shows the weight, its colour the head. Heat maps, as in the Annotated Transformer, share one
colour scale.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from transept.api.attention import AttentionMap
from transept.apps.svg import (
    FONT_SIZE,
    LETTER,
    MARGIN,
    Anchor,
    Box,
    Label,
    Panel,
    Shape,
    Stroke,
    Weight,
    text_width,
)

FAINTEST = 5e-4
"""Smaller weights are omitted because they would be invisible."""
WIDEST_ROW = 860.0
"""The maximum width of horizontal words. If a row is wider, all words are rotated."""
HEADING, SPACE, GUTTER = 26.0, 14.0, 8.0
UPRIGHT_SLOTS = 1.55 * FONT_SIZE, 2.4 * FONT_SIZE
"""The minimum and maximum width of the slot of a rotated word."""
STRIP = 7.0
"""The height of the cells that show the weight of each key and head."""
GAP = 6.0
"""The gap between a heat map and its words."""
CELL = 1.45 * FONT_SIZE
MOST_COLUMNS = 4
WIDEST_GRID = 1500.0
SCALE_STEPS = 24


class Row(NamedTuple):
    """The positions of the words of a row."""

    centres: list[float]
    slot: float
    """The width of the narrowest slot."""
    width: float
    height: float
    upright: bool


def draw_lines(
    attention: AttentionMap, layer: int, heads: Sequence[int], word: int | None = None
) -> Panel:
    """Draw some heads of one layer, for all words or one word. All are numbered from 0."""
    queries, keys = visible(attention.queries.pieces), visible(attention.keys.pieces)
    above, below = _rows(queries, keys)
    heading = _heading(layer, heads)
    heading_width = sum(part.width for part in heading)
    width = max(above.width, below.width, heading_width)
    gap = min(max(0.24 * width, 130.0), 280.0)
    top = HEADING + above.height + GUTTER
    bottom = top + gap
    strip = STRIP + GUTTER if word is not None else 0.0
    shapes: list[Shape] = []
    x = (width - heading_width) / 2
    for text, colour, own in heading:
        shapes.append(Label(x + own / 2, HEADING / 4, text, "note", head=colour))
        x += own
    from_x, to_x = (_centred(row, width) for row in (above, below))
    column = min(above.slot, below.slot) * 0.8 / len(heads)
    for number, head in enumerate(heads):
        shift = (number - (len(heads) - 1) / 2) * column
        weights = attention.weights[layer, head].tolist()
        for query in range(len(from_x)) if word is None else [word]:
            for key, weight in enumerate(weights[query]):
                shown = Weight(head, query, key, weight)
                x = to_x[key] + shift
                if weight >= FAINTEST:
                    shapes.append(Stroke(from_x[query] + shift, top, x, bottom, shown))
                if word is not None:
                    where = (x - column / 2, bottom + 2, column, STRIP)
                    shapes.append(Box(*where, opacity=weight, weight=shown, head=head))
    shapes += _words(queries, from_x, top - GUTTER, above.upright, -1, word)
    shapes += _words(keys, to_x, bottom + strip + GUTTER, below.upright, 1, None)
    height = bottom + strip + GUTTER + below.height
    numbers = ", ".join(str(head + 1) for head in heads)
    title = f"Layer {layer + 1}, {_heads(heads)} {numbers}"
    return Panel(title, width, height, tuple(shapes))


def _rows(above: Sequence[str], below: Sequence[str]) -> tuple[Row, Row]:
    rows = _flat(above), _flat(below)
    if all(row.width <= WIDEST_ROW for row in rows):
        return rows
    least, most = UPRIGHT_SLOTS
    slot = min(max(least, WIDEST_ROW / max(len(above), len(below))), most)
    return _upright(above, slot), _upright(below, slot)


def _flat_slot(word: str) -> float:
    # The lines of many heads need some width even at a full stop.
    return max(text_width(word), 2 * FONT_SIZE) + SPACE


def _flat(words: Sequence[str]) -> Row:
    centres, x = [], 0.0
    for word in words:
        width = _flat_slot(word)
        centres.append(x + width / 2)
        x += width
    return Row(centres, min(map(_flat_slot, words)), x, FONT_SIZE * 1.2, upright=False)


def _upright(words: Sequence[str], slot: float) -> Row:
    centres = [(number + 0.5) * slot for number in range(len(words))]
    return Row(centres, slot, len(words) * slot, widest(words), upright=True)


def _centred(row: Row, width: float) -> list[float]:
    return [x + (width - row.width) / 2 for x in row.centres]


def _words(
    words: Sequence[str],
    xs: Sequence[float],
    y: float,
    upright: bool,
    direction: int,
    chosen: int | None,
) -> list[Shape]:
    """A row of words that extends up (-1) or down (1) from `y`."""
    # Rotated text reads upwards: it starts at the lines if above them, and ends there if below.
    anchor: Anchor = "middle" if not upright else "start" if direction < 0 else "end"
    middle = y if upright else y + direction * FONT_SIZE * 0.6
    return [
        Label(
            x,
            middle,
            word,
            "word" if chosen is None else "strong" if number == chosen else "faint",
            anchor,
            upright,
        )
        for number, (word, x) in enumerate(zip(words, xs, strict=True))
    ]


class HeadingPart(NamedTuple):
    """The layer, or the number of a head in its colour."""

    text: str
    head: int | None
    width: float


def _heading(layer: int, heads: Sequence[int]) -> list[HeadingPart]:
    texts = [f"layer {layer + 1}, {_heads(heads)}", *(str(head + 1) for head in heads)]
    return [
        HeadingPart(text, head, text_width(text) + 1.5 * LETTER)
        for text, head in zip(texts, [None, *heads], strict=True)
    ]


def _heads(heads: Sequence[int]) -> str:
    return "heads" if len(heads) > 1 else "head"


def visible(pieces: Sequence[str]) -> list[str]:
    """Subwords for display, with a small dot instead of the conspicuous `▁`."""
    return [piece.replace("▁", "·") for piece in pieces]


def widest(texts: Sequence[str]) -> float:
    """The approximate width of the widest text."""
    return max(map(text_width, texts), default=0.0)


# --- heat maps -------------------------------------------------------------------------------


def draw_heat_maps(attention: AttentionMap, layer: int, heads: Sequence[int]) -> list[list[Panel]]:
    """Rows of heat maps, one per head, and a colour scale. Layer and heads are numbered from 0."""
    full = float(attention.weights[layer, list(heads)].max())
    maps = [_heat_map(attention, layer, head, full) for head in heads]
    columns = _columns(len(maps), maps[0].width)
    rows = [maps[start : start + columns] for start in range(0, len(maps), columns)]
    return [*rows, [_scale(full)]]


def _columns(n_maps: int, width: float) -> int:
    fitting = max(1, int((WIDEST_GRID + MARGIN) // (width + MARGIN)))
    most = min(MOST_COLUMNS, fitting, n_maps)
    # Prefer rows of equal length: 3 and 3 instead of 4 and 2.
    return math.ceil(n_maps / math.ceil(n_maps / most))


def _heat_map(attention: AttentionMap, layer: int, head: int, full: float) -> Panel:
    """One head, with a row per query and a column per key."""
    queries, keys = visible(attention.queries.pieces), visible(attention.keys.pieces)
    left, top = widest(queries) + GAP, HEADING
    width, height = len(keys) * CELL, len(queries) * CELL
    name = f"layer {layer + 1}, head {head + 1}"
    shapes: list[Shape] = [Label(left + width / 2, HEADING / 3, name, "note")]
    for query, row in enumerate(attention.weights[layer, head].tolist()):
        y = top + query * CELL
        shapes.append(Label(left - GAP, y + CELL / 2, queries[query], anchor="end"))
        for key, weight in enumerate(row):
            shown = Weight(head, query, key, weight)
            shapes.append(Box(left + key * CELL, y, CELL, CELL, weight / full, shown))
    shapes.append(Box(left, top, width, height))
    for key, word in enumerate(keys):
        x = left + (key + 0.5) * CELL
        shapes.append(Label(x, top + height + GAP, word, anchor="end", upright=True))
    return Panel(name.capitalize(), left + width, top + height + GAP + widest(keys), (*shapes,))


def _scale(full: float) -> Panel:
    """The colour scale from 0 to the largest weight."""
    low, high, step, height = "weight 0", f"{full:.2f}", 6.0, 0.8 * FONT_SIZE
    length = SCALE_STEPS * step
    x = text_width(low) + LETTER
    shapes: list[Shape] = [Label(0, height / 2, low, "note", "start")]
    for number in range(SCALE_STEPS):
        shapes.append(Box(x + number * step, 0, step, height, (number + 0.5) / SCALE_STEPS))
    shapes.append(Box(x, 0, length, height))
    shapes.append(Label(x + length + LETTER, height / 2, high, "note", "start"))
    return Panel("Scale", x + length + LETTER + text_width(high), height, (*shapes,))
