"""Figures of the documentation, made from benchmarks/results as tables.py makes tables."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 680, 340, 48, 190, 40, 44
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7d7d7d")
LINE = 16
STYLE = (
    "text{font:13px 'DejaVu Sans','Helvetica Neue',Arial,sans-serif;fill:#1b1f24}"
    ".paper{fill:#fff}.rule{stroke:#8884;stroke-width:1}.middle{text-anchor:middle}"
    ".end{text-anchor:end}polyline{fill:none;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#e8eaed}.paper{fill:#15181c}}"
)
LOWEST, HIGHEST, BASELINE = 70, 95, "right-branching"
LENGTH = re.compile(r"test, (\d+ to \d+|over \d+) words")


def parsing_length(record: Mapping[str, Any]) -> str:
    """F1 of each parser by the length of the sentence, as SVG.

    The baseline is far below all of them: with it, nobody could tell them apart.
    """
    systems: dict[str, dict[str, float]] = {}
    for row in record["rows"]:
        if row["system"] != BASELINE and (length := LENGTH.fullmatch(row["work"])):
            systems.setdefault(row["system"], {})[length[1].replace(" to ", "–")] = row["value"]
    lengths = list(dict.fromkeys(length for found in systems.values() for length in found))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(lengths) - 1)
    across = {length: LEFT + step * index for index, length in enumerate(lengths)}
    title = "F1 on test by the words of a sentence"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}">',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            f'<text x="{LEFT}" y="22">{title}</text>',
            *map(_rule, range(LOWEST, HIGHEST + 1, 5)),
            *(
                f'<text class="middle" x="{x:.1f}" y="{HEIGHT - 18}">{length}</text>'
                for length, x in across.items()
            ),
            *(
                _curve(system, [(across[length], f1) for length, f1 in found.items()], colour)
                for (system, found), colour in zip(systems.items(), COLOURS, strict=False)
            ),
            *_names({name: found[lengths[-1]] for name, found in systems.items()}),
            "</svg>\n",
        ]
    )


def _rule(f1: int) -> str:
    y = _down(f1)
    return (
        f'<line class="rule" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        f'<text class="end" x="{LEFT - 8}" y="{y + 4:.1f}">{f1}</text>'
    )


def _curve(system: str, points: list[tuple[float, float]], colour: str) -> str:
    places = [(x, _down(f1)) for x, f1 in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"><title>{escape(system)}: '
        f"{f1:.1f}</title></circle>"
        for (x, y), (_, f1) in zip(places, points, strict=True)
    )
    return f'<polyline points="{line}" stroke="{colour}"/>{dots}'


def _names(ends: Mapping[str, float]) -> list[str]:
    """Each curve's name beside its end, the lowest first, with a line's height between two."""
    colours = dict(zip(ends, COLOURS, strict=False))
    names, below = [], float(HEIGHT)
    for system in sorted(ends, key=ends.__getitem__):
        y = below = min(_down(ends[system]) + 4, below - LINE)
        names.append(
            f'<text x="{WIDTH - RIGHT + 10}" y="{y:.1f}">'
            f'<tspan fill="{colours[system]}">● </tspan>{escape(system)}</text>'
        )
    return names


def _down(f1: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (f1 - LOWEST) / (HIGHEST - LOWEST)
