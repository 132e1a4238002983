"""Two rows of words with lines between them, as in Figures 3 to 5 of the paper.

The words above look at the words below. A line's width is the weight, its colour the head.
"""

from collections.abc import Sequence
from typing import NamedTuple

from transept.api.attention import AttentionMap
from transept.apps.visualize.pictures import (
    FONT_SIZE,
    LETTER,
    Anchor,
    Cell,
    DrawnLine,
    Label,
    Panel,
    Place,
    Shape,
    Style,
    text_width,
    visible,
    widest,
)

FAINTEST = 5e-4
"""Weights below it are left out: no eye could see them."""
WIDEST_ROW = 860.0
"""Words lie flat if both rows of them are at most so wide; otherwise they stand upright."""
HEADING, SPACE, GUTTER = 26.0, 14.0, 8.0
UPRIGHT_SLOTS = 1.55 * FONT_SIZE, 2.4 * FONT_SIZE
"""The least and the most room that an upright word has beside others."""
STRIP = 7.0
"""The height of the cells that show what each word is given, head by head."""


class Row(NamedTuple):
    """Where the words of a row stand."""

    centres: list[float]
    slot: float
    """The narrowest place that a word has."""
    width: float
    height: float
    upright: bool


def draw_lines(
    attention: AttentionMap, layer: int, heads: Sequence[int], word: int | None = None
) -> Panel:
    """One layer's attention, of some heads, in full or from one word; all counted from 0."""
    queries, keys = visible(attention.queries.pieces), visible(attention.keys.pieces)
    above, below = _rows(queries, keys)
    heading = _heading(layer, heads, max(above.width, below.width))
    width = max(above.width, below.width, heading.width)
    gap = min(max(0.24 * width, 130.0), 280.0)
    top = HEADING + above.height + GUTTER
    bottom = top + gap
    strip = STRIP + GUTTER if word is not None else 0.0
    shapes: list[Shape] = heading.centred(width)
    from_x, to_x = (_centred(row, width) for row in (above, below))
    column = min(above.slot, below.slot) * 0.8 / len(heads)
    for number, head in enumerate(heads):
        shift = (number - (len(heads) - 1) / 2) * column
        weights = attention.weights[layer, head].tolist()
        for query in range(len(from_x)) if word is None else [word]:
            for key, weight in enumerate(weights[query]):
                place = Place(head, query, key)
                x = to_x[key] + shift
                if weight >= FAINTEST:
                    shapes.append(DrawnLine(from_x[query] + shift, top, x, bottom, weight, place))
                if word is not None:
                    shapes.append(Cell(x - column / 2, bottom + 2, column, STRIP, weight, place))
    shapes += _words(queries, from_x, top - GUTTER, above.upright, -1, word)
    shapes += _words(keys, to_x, bottom + strip + GUTTER, below.upright, 1, None)
    height = bottom + strip + GUTTER + below.height
    return Panel(_title(layer, heads), width, height, tuple(shapes))


def _rows(above: Sequence[str], below: Sequence[str]) -> tuple[Row, Row]:
    flat = all(_flat_width(words) <= WIDEST_ROW for words in (above, below))
    if flat:
        return _flat(above), _flat(below)
    least, most = UPRIGHT_SLOTS
    slot = min(max(least, WIDEST_ROW / max(len(above), len(below))), most)
    return _upright(above, slot), _upright(below, slot)


def _flat_width(words: Sequence[str]) -> float:
    return sum(map(_flat_slot, words))


def _flat_slot(word: str) -> float:
    # Lines of many heads need some room at a full stop too.
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
    """A row of words that goes up (-1) or down (1) from `y`."""
    # Upright text reads upwards: above the lines it starts at them, below it ends at them.
    anchor: Anchor = "middle" if not upright else "start" if direction < 0 else "end"
    middle = y if upright else y + direction * FONT_SIZE * 0.6
    return [
        Label(x, middle, word, _style(number, chosen), anchor, upright)
        for number, (word, x) in enumerate(zip(words, xs, strict=True))
    ]


def _style(number: int, chosen: int | None) -> Style:
    return "word" if chosen is None else "strong" if number == chosen else "faint"


class Heading(NamedTuple):
    """The layer, and the heads in their colours."""

    texts: list[str]
    widths: list[float]
    heads: list[int | None]

    @property
    def width(self) -> float:
        """About how wide all of it is."""
        return sum(self.widths)

    def centred(self, width: float) -> list[Shape]:
        """Its labels, in the middle of this width."""
        x, labels = (width - self.width) / 2, []
        for text, own, head in zip(*self, strict=True):
            labels.append(Label(x + own / 2, HEADING / 4, text, "note", head=head))
            x += own
        return [*labels]


def _heading(layer: int, heads: Sequence[int], width: float) -> Heading:
    texts = [f"layer {layer + 1}", *(f"head {head + 1}" for head in heads)]
    widths = [text_width(text) + 2 * LETTER for text in texts]
    # Where many heads have no room, their numbers are enough.
    if sum(widths) > width and len(heads) > 1:
        texts = [f"layer {layer + 1}, heads", *(str(head + 1) for head in heads)]
        widths = [text_width(text) + 1.5 * LETTER for text in texts]
    return Heading(texts, widths, [None, *heads])


def _title(layer: int, heads: Sequence[int]) -> str:
    numbers = ", ".join(str(head + 1) for head in heads)
    return f"Layer {layer + 1}, head{'s' if len(heads) > 1 else ''} {numbers}"
