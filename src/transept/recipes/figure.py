"""Training curves as SVG, written by hand: small, and its text is text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 24, 44
COLOURS: Final = ("#1f6fb4", "#d9541e", "#2c8c4b", "#8d4fa8", "#b8860b", "#555555")
TICKS: Final = 6
TALLEST: Final = 1.2
"""How far above the lowest value is shown: the steep fall at first would flatten the rest."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, *, zero: bool) -> "Axis":
        """An axis that holds all values, from nought if asked for."""
        low, high = (0.0 if zero else min(values)), max(values)
        return cls(low, high if high > low else low + 1, start, end)

    def at_most(self, length: float) -> "Axis":
        """The same axis, with its upper end cut off if it is longer than this."""
        return replace(self, high=min(self.high, self.low + length))

    def place(self, value: float) -> float:
        """Where a value lies."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers, not too many."""
        rough = (self.high - self.low) / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def draw(series: Mapping[str, Points], *, x_label: str, y_label: str) -> str:
    """A line for each series, with a legend; what lies far above the lowest value is cut off."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    across = Axis.over(xs, LEFT, WIDTH - RIGHT, zero=True)
    up = Axis.over(ys, HEIGHT - BOTTOM, TOP, zero=False).at_most(TALLEST)
    parts = [*_grid(across, up), *_labels(x_label, y_label)]
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" '
            'clip-path="url(#frame)"/>'
        )
        parts += _legend(number, name, colour)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" fill="#333">'
    )
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    frame = (
        f'<clipPath id="frame"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{HEIGHT - TOP - BOTTOM + 1}"/></clipPath>'
    )
    return "\n".join([head, ground, frame, *parts, "</svg>"]) + "\n"


def _grid(across: Axis, up: Axis) -> list[str]:
    lines = []
    for value in across.ticks():
        x = across.place(value)
        lines.append(_line(x, TOP, x, HEIGHT - BOTTOM))
        lines.append(_text(x, HEIGHT - BOTTOM + 16, f"{value:g}", "middle"))
    for value in up.ticks():
        y = up.place(value)
        lines.append(_line(LEFT, y, WIDTH - RIGHT, y))
        lines.append(_text(LEFT - 6, y + 4, f"{value:g}", "end"))
    return lines


def _labels(x_label: str, y_label: str) -> list[str]:
    return [
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, "middle"),
        _text(LEFT, TOP - 10, y_label, "start"),
    ]


def _legend(number: int, name: str, colour: str) -> list[str]:
    y = TOP + 16 + 18 * number
    x = WIDTH - RIGHT - 8
    return [
        f'<line x1="{x - 18}" y1="{y - 4}" x2="{x}" y2="{y - 4}" stroke="{colour}" '
        'stroke-width="2"/>',
        _text(x - 24, y, name, "end"),
    ]


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ddd"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
