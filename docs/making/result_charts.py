"""The charts of the pages of results."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from making.charts import WIDTH, Frame, colour, names_beside, svg, ticks
from making.records import MARIAN, PAPER, SPLIT, Collection, Record, sha256, system_of

TALLEST: Final = 1.2
"""The height of a curve's axis above the lowest value. The first steep descent is cut off."""
DUBLIN_CORE: Final = "http://purl.org/dc/elements/1.1/"


def curves(records: Collection) -> dict[str, dict[str, Any]]:
    """The training curves of runs that were validated on the same tokens, by picture.

    A picture has the name of its first run. −log p of other tokens is another quantity.
    """
    by_dev: dict[str, dict[str, Any]] = {}
    for name, run in records.runs.items():
        if points := losses(run):
            dev = run["stages"]["prepare"]["results"]["corpora"]["dev"]["hash"]
            by_dev.setdefault(dev, {})[name] = points
    return {f"{next(iter(shown))}.svg": shown for shown in by_dev.values()}


def losses(run: Record) -> list[Record]:
    """The points of a run's curve that have a validation loss. Others have only BLEU."""
    return [point for point in run["curve"] if "nll" in point]


def digest(shown: Mapping[str, Any]) -> str:
    """The sha256 of the points of a picture, which the picture states as its description."""
    return sha256(json.dumps(shown).encode())


def draw(shown: Mapping[str, Any], path: Path) -> None:
    """Draw training curves over time and over target tokens."""
    low = min(point["nll"] for curve in shown.values() for point in curve)
    colours = {name: index for index, name in enumerate(shown)}
    parts, top = [], 20.0 + 18 * len(shown)
    for index, name in enumerate(shown):
        y = 14 + 18 * index
        parts.append(
            f'<text x="0" y="{y}"><tspan style="fill:{colour(index)}">● </tspan>'
            f"<tspan>{escape(name)}</tspan></text>"
        )
    for place, (label, unit, per) in enumerate(
        (("minutes of training", "seconds", 60.0), ("million target tokens", "target_tokens", 1e6))
    ):
        series = {
            name: [(point[unit] / per, point["nll"]) for point in curve]
            for name, curve in shown.items()
        }
        left, y_label = 34 + place * WIDTH / 2, "" if place else "validation −log p per token"
        frame = _panel(left, top + 18, series, (low - 0.05, low + TALLEST))
        parts += _drawn(frame, series, colours, label, y_label)
    description = f'<dc:description xmlns:dc="{DUBLIN_CORE}">{digest(shown)}</dc:description>'
    described = f"<metadata>{description}</metadata>"
    chart = svg(f"Training curves of {', '.join(shown)}", top + 270, [described, *parts])
    path.write_text(chart, encoding="utf-8")


def _panel(
    left: float,
    top: float,
    series: Mapping[str, list[tuple[float, float]]],
    heights: tuple[float, float],
) -> Frame:
    most = max(x for points in series.values() for x, _ in points)
    return Frame(left, top, WIDTH / 2 - 50, 200, (0, 1.02 * most), heights)


def _drawn(
    frame: Frame,
    series: Mapping[str, list[tuple[float, float]]],
    colours: Mapping[str, int],
    x_label: str,
    y_label: str,
) -> Iterator[str]:
    """The axes and curves of a panel; points above it are left out."""
    if y_label:
        x, y = frame.left - 34, frame.top - 12
        yield f'<text class="quiet" x="{x:.0f}" y="{y:.0f}">{y_label}</text>'
    yield from frame.axes(ticks(*frame.x), ticks(*frame.y))
    middle, below = frame.left + frame.width / 2, frame.top + frame.height + 42
    yield f'<text class="middle quiet" x="{middle:.0f}" y="{below:.0f}">{x_label}</text>'
    for name, points in series.items():
        yield frame.curve([(x, y) for x, y in points if y <= frame.y[1]], colours[name])


def overview(records: Collection) -> str:
    """BLEU and validation loss of base models over minutes, transept and the baseline, as SVG."""
    # Runs on the same text. Others cannot be compared with the baseline.
    runs = [run for run in records.runs.values() if run["name"] == "europarl-en-de-base"]
    colours = {"transept": 0, MARIAN: 1}
    scores: dict[str, list[tuple[float, Record]]] = {}
    curves: dict[str, list[tuple[float, float]]] = {}
    for run in runs:
        found = run["stages"]["score"]["results"]["tests"]["newstest2014"]["systems"][0]["scores"]
        split = next(score for score in found if score["convention"]["name"] == SPLIT)
        minutes = run["stages"]["train"]["results"]["seconds"] / 60
        scores.setdefault(system_of(run), []).append((minutes, split))
        points = [(point["seconds"] / 60, point["nll"]) for point in losses(run)]
        curves[system_of(run)] = max(curves.get(system_of(run), []), points, key=_length)
    left = Frame(34, 50, WIDTH / 2 - 60, 220, (0, 21), (18, 28))
    parts = ['<text class="quiet" x="0" y="14">BLEU on newstest2014</text>']
    parts += left.axes(ticks(0, 20), ticks(18, 28))
    paper = left.down(PAPER["en-de base"].bleu)
    parts.append(
        f'<line class="dashed" x1="{left.left}" x2="{left.left + left.width}" y1="{paper:.1f}" '
        f'y2="{paper:.1f}" style="stroke:var(--chart-quiet);stroke-width:1.5"/>'
        f'<text class="quiet" x="{left.left + 4}" y="{paper + 17:.1f}">'
        f"the paper's base: {PAPER['en-de base'].bleu}, WMT 2014</text>"
    )
    for system, points in scores.items():
        for minutes, score in points:
            parts.append(_point(left, minutes, score, colours[system], system))
    parts.append(
        f'<text class="middle quiet" x="{left.left + left.width / 2:.0f}" y="312">'
        "minutes of training on one H200</text>"
    )
    low = min(y for points in curves.values() for _, y in points)
    right = _panel(34 + WIDTH / 2, 50, curves, (low - 0.05, low + TALLEST))._replace(height=220)
    parts += _drawn(right, curves, colours, "minutes of training on one H200", "")
    parts.append(
        f'<text class="quiet" x="{WIDTH / 2:.0f}" y="14">validation −log p per token</text>'
    )
    ends = {name: right.top + 14 + 18 * index for index, name in enumerate(curves)}
    parts += names_beside(right.left + right.width - 160, ends, colours)
    return svg("BLEU and validation loss of the base model over the time of training", 318, parts)


def _length(points: list[tuple[float, float]]) -> tuple[float, int]:
    """Of several runs of one system, the longest in time is shown."""
    return (points[-1][0] if points else 0.0, len(points))


def _point(frame: Frame, minutes: float, score: Record, series: int, name: str) -> str:
    x, y = frame.across(minutes), frame.down(score["value"])
    low, high = (frame.down(score["interval"][key]) for key in ("low", "high"))
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" '
        f'style="stroke:{colour(series)};stroke-width:2"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" style="fill:{colour(series)}">'
        f"<title>{escape(name)}, {minutes:.1f} minutes: {score['value']:.2f}</title></circle>"
        f'<text class="end" x="{x - 9:.1f}" y="{y + 4:.1f}">{score["value"]:.1f}</text>'
    )
