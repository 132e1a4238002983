"""Charts of the documentation, as SVG.

A chart has no background, and its colours are custom properties. As a file it follows the colour
scheme of the reader's system. The site writes the SVG into the page, where
`conf.py` sets the properties by the theme that the reader chose.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor
from typing import Final, NamedTuple

from making.palette import DARK, LIGHT, Palette

WIDTH: Final = 660
LINE: Final = 16
"""The height of a line of text."""
RULE: Final = "#8885"
"""Grid lines: half transparent, so that one colour suits both themes."""


def properties(palette: Palette) -> str:
    """The colours of a theme as custom properties: `--chart-ink`, `--chart-0` and so on."""
    series = "".join(f"--chart-{n}:{colour};" for n, colour in enumerate(palette.series))
    return f"--chart-ink:{palette.ink};--chart-quiet:{palette.quiet};{series}"


COLOURS: Final = (
    f".chart{{{properties(LIGHT)}}}"
    f"@media(prefers-color-scheme:dark){{.chart{{{properties(DARK)}}}}}"
)
"""The colours of a chart that is a file. On the site they are the page's, by its theme."""
RULES: Final = (
    ".chart text{font:13px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;"
    "fill:var(--chart-ink)}"
    ".chart .quiet{fill:var(--chart-quiet)}.chart .strong{font-weight:650}"
    ".chart .middle{text-anchor:middle}.chart .end{text-anchor:end}"
    f".chart .rule{{stroke:{RULE};stroke-width:1}}"
    ".chart polyline{fill:none;stroke-width:2}.chart .dashed{stroke-dasharray:6 4}"
)


class Bar(NamedTuple):
    """One bar: a system's value."""

    system: str
    value: float
    note: str = ""
    """Printed behind the bar."""


def colour(number: int) -> str:
    """The colour of a series, which depends on the theme."""
    return f"var(--chart-{number})"


def svg(title: str, height: float, parts: Iterable[str], width: int = WIDTH) -> str:
    """A whole chart. The title is its accessible name; pages print a caption below it."""
    name = escape(title, quote=True)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" '
            f'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" '
            f'role="img" aria-label="{name}">',
            f"<title>{escape(title)}</title>",
            f"<style>{COLOURS}{RULES}</style>",
            *parts,
            "</svg>\n",
        ]
    )


def bars(
    title: str,
    groups: Mapping[str, Sequence[Bar]],
    colours: Mapping[str, int],
    *,
    shared_scale: bool = False,
) -> str:
    """Horizontal bars in groups, each with its value.

    Args:
        title: The accessible name of the chart.
        groups: The bars of each group, by the group's heading.
        colours: The number of each system's colour.
        shared_scale: Whether the bars of all groups have one scale. By default the longest bar
            of each group has the full length.
    """
    # Names and values come first, so that a narrow screen shows them without scrolling.
    names, left, thick, gap = 156, 236, 17, 5
    notes = max(len(bar.note) for group in groups.values() for bar in group)
    right = 12 + 7 * notes
    longest = max(bar.value for group in groups.values() for bar in group)
    parts: list[str] = []
    y = 0.0
    for heading, group in groups.items():
        y += 20
        parts.append(f'<text class="strong" x="0" y="{y:.0f}">{escape(heading)}</text>')
        y += 9
        scale = longest if shared_scale else max(bar.value for bar in group)
        for bar in group:
            width = max(1.0, (WIDTH - left - right) * bar.value / scale)
            middle = y + thick / 2 + 4.5
            value = number(bar.value)
            parts += [
                f'<text class="end quiet" x="{names}" y="{middle:.1f}">{escape(bar.system)}</text>',
                f'<text class="end" x="{left - 8}" y="{middle:.1f}">{value}</text>',
                f'<rect x="{left}" y="{y:.1f}" width="{width:.1f}" height="{thick}" rx="2" '
                f'fill="{colour(colours[bar.system])}"><title>{escape(bar.system)}: {value}'
                "</title></rect>",
            ]
            if bar.note:
                x = left + width + 8
                parts.append(f'<text x="{x:.1f}" y="{middle:.1f}">{escape(bar.note)}</text>')
            y += thick + gap
        y += 6
    return svg(title, y, parts)


class Frame(NamedTuple):
    """A rectangle with linear scales in which curves are drawn."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        """The horizontal place of a value."""
        return self.left + self.width * (value - self.x[0]) / (self.x[1] - self.x[0])

    def down(self, value: float) -> float:
        """The vertical place of a value."""
        return self.top + self.height * (self.y[1] - value) / (self.y[1] - self.y[0])

    def axes(self, across: Mapping[float, str], down: Mapping[float, str]) -> list[str]:
        """Horizontal rules, and labels below and to the left."""
        bottom, right = self.top + self.height, self.left + self.width
        parts = []
        for value, label in down.items():
            y = self.down(value)
            parts.append(
                f'<line class="rule" x1="{self.left:.1f}" y1="{y:.1f}" x2="{right:.1f}" '
                f'y2="{y:.1f}"/><text class="end quiet" x="{self.left - 8:.1f}" '
                f'y="{y + 4:.1f}">{escape(label)}</text>'
            )
        parts += [
            f'<text class="middle quiet" x="{self.across(value):.1f}" y="{bottom + 20:.1f}">'
            f"{escape(label)}</text>"
            for value, label in across.items()
        ]
        return parts

    def curve(self, points: Sequence[tuple[float, float]], series: int, name: str = "") -> str:
        """A line through points; with a name, each point is a dot that shows its value."""
        places = [(self.across(x), self.down(y)) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        shown = f'<polyline points="{line}" style="stroke:{colour(series)}"/>'
        if name:
            shown += "".join(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" style="fill:{colour(series)}">'
                f"<title>{escape(name)}: {value:.1f}</title></circle>"
                for (x, y), (_, value) in zip(places, points, strict=True)
            )
        return shown


def names_beside(x: float, ends: Mapping[str, float], colours: Mapping[str, int]) -> list[str]:
    """A name beside the end of each curve, with at least one line of height between two."""
    parts, below = [], float("inf")
    for name in sorted(ends, key=ends.__getitem__, reverse=True):
        y = below = min(ends[name] + 4, below - LINE)
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}"><tspan style="fill:{colour(colours[name])}">● </tspan>'
            f"{escape(name)}</text>"
        )
    return parts


def ticks(low: float, high: float, most: int = 6) -> dict[float, str]:
    """Round numbers from `low` to `high`, at most `most`, with their labels."""
    for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first < most:
            return {
                n * step: f"{n * step:,.{0 if step >= 1 else 1}f}" for n in range(first, last + 1)
            }
    raise ValueError(f"{low} to {high}: the range is too large")


def number(value: float) -> str:
    """A value with three significant digits, without an exponent."""
    if value >= 1000:
        return f"{round(value, 3 - len(str(int(value)))):,.0f}"
    return f"{value:.3g}"
