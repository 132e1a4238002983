"""Figures of the documentation, generated from benchmarks/results like the tables of tables.py.

A bar chart is one entry of CHARTS: the record, its unit, and the works and systems to show. Its
file is docs/figures/NAME.svg. It is drawn if the record exists.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil, floor, hypot, log10
from pathlib import Path
from typing import Any, NamedTuple

from table3 import label, summaries

from transept.apps.recipes.table import PAPER

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))

from making.charts import LINE, WIDTH, Bar, Frame, bars, colour, names_beside, svg, ticks

Record = Mapping[str, Any]

OURS, MARIAN, CT2, CT2_INT8 = (
    "transept", "Hugging Face MarianMT", "CTranslate2 float32", "CTranslate2 int8"
)  # fmt: skip
CT2_FP16, ONE_CALL = "CTranslate2 float16", "one call, no server"
COLOURS = {OURS: 0, MARIAN: 7, CT2: 1, CT2_FP16: 1, CT2_INT8: 4, "server": 0, ONE_CALL: 7}
"""The colour number of each system, the same in every chart."""


class Chart(NamedTuple):
    """A bar chart of some rows of one record."""

    record: str
    title: str
    unit: str
    systems: Mapping[str, str]
    """The name of each system of the record in the chart."""
    works: Mapping[str, str]
    """The heading of each work of the record that is shown."""
    times: bool = True
    """Whether the first bar of a group is labelled with its ratio to the second one."""
    notes: Sequence[str] = ()
    """Rows of the same work, in ms, that are printed after the value."""
    shared_scale: bool = False


CHARTS = {
    "train-gpu": Chart(
        "gpu_training",
        "Training speed on one H200, target tokens per second",
        "target tokens/s",
        {"transept": OURS, "MarianMT bf16": MARIAN},
        {"base": "base, 25,000 tokens per batch", "big": "big, 25,000 tokens per batch"},
    ),
    "translate-gpu": Chart(
        "gpu_decoding",
        "Translation speed on one H200 in half precision, output tokens per second",
        "output tokens/s",
        {"transept fp16": OURS, "HF MarianMT fp16": MARIAN},
        {
            "base, greedy, batch 1": "base, greedy, 1 sentence",
            "base, beam 4, batch 1": "base, beam 4, 1 sentence",
            "base, greedy, batch 64": "base, greedy, 64 sentences",
            "base, beam 4, batch 64": "base, beam 4, 64 sentences",
        },
    ),
    "translate-gpu-ctranslate2": Chart(
        "gpu_ctranslate2",
        "Translation speed on one H200 in half precision, output tokens per second",
        "output tokens/s",
        {"transept fp16": OURS, "CTranslate2 float16": CT2_FP16},
        {
            "base, beam 4, 1 sentence": "base, beam 4, 1 sentence",
            "base, beam 4, 64 sentences": "base, beam 4, 64 sentences",
            "base, beam 4, 1,024 sentences": "base, beam 4, 1,024 sentences",
            "base, beam 4, 3,003 sentences": "base, beam 4, 3,003 sentences",
        },
    ),
    "translate-cpu": Chart(
        "cpu_decoding",
        "Translation speed on one CPU core, beam 4, output tokens per CPU-second",
        "output tokens/CPU-s",
        {
            "transept": OURS, "HF MarianMT": MARIAN, "CTranslate2 float32": CT2,
            "transept, engine ctranslate2-int8": CT2_INT8,
        },
        {
            "small, beam 4, batch 1": "small, 1 sentence",
            "small, beam 4, batch 32": "small, 32 sentences",
            "base, beam 4, batch 1": "base, 1 sentence",
            "base, beam 4, batch 32": "base, 32 sentences",
        },
        times=False,
    ),
    "server": Chart(
        "served",
        "Sentences per second of the server on one H200",
        "sentences/s",
        {"server": "server", "Python": ONE_CALL},
        {
            "1 client, 1 at once": "1 client, 1 sentence per request",
            "50 clients, 1 at once": "50 clients, 1 sentence per request",
            "200 clients, 1 at once": "200 clients, 1 sentence per request",
            "50 clients, 20 at once": "50 clients, 20 sentences per request",
            "3,003 sentences in one call": "3,003 sentences in one call of the Python API",
        },
        times=False,
        notes=("p50", "p95"),
        shared_scale=True,
    ),
}  # fmt: skip


def chart(name: str, record: Record) -> str:
    """One of CHARTS, as SVG."""
    made = CHARTS[name]
    found: dict[str, dict[str, float]] = {}
    waits: dict[str, dict[str, float]] = {}
    for row in record["rows"]:
        if row["unit"] == made.unit and row["system"] in made.systems:
            found.setdefault(row["work"], {})[made.systems[row["system"]]] = row["value"]
        elif row["unit"] == "ms" and row["system"] in made.notes:
            waits.setdefault(row["work"], {})[row["system"]] = row["value"]
    groups = {}
    for work, heading in made.works.items():
        values = found[work]
        note = ", ".join(f"{key} {value:.0f} ms" for key, value in waits.get(work, {}).items())
        if made.times:
            ours, theirs, *_ = values.values()
            note = f"{ours / theirs:.1f} ×"
        groups[heading] = [
            Bar(system, value, note if index == 0 else "")
            for index, (system, value) in enumerate(values.items())
        ]
    return bars(made.title, groups, COLOURS, shared_scale=made.shared_scale)


# --- quality by length -----------------------------------------------------------------------

BASELINE = "right-branching"
WORDS = re.compile(r"test, (\d+ to \d+|over \d+) words")
TOKENS = re.compile(r"(\d+ to \d+) tokens")
Systems = dict[str, dict[str, float]]
"""By system, a value for each range of lengths."""


def parsing_length(record: Record) -> str:
    """F1 of each parser by the length of the sentence, as SVG.

    The baseline is omitted. It is so far below the parsers that their curves would coincide.
    """
    rows = [row for row in record["rows"] if row["system"] != BASELINE]
    title = "F1 on the test set by the length of the sentence"
    return by_length(_by_range(rows, WORDS), "F1", "words of a sentence", range(70, 96, 5), title)


def translation_length(record: Record) -> str:
    """BLEU of each translator by the length of the source, as SVG."""
    rows = [row for row in record["rows"] if row["unit"] == "BLEU"]
    title = "BLEU by the length of the source"
    return by_length(_by_range(rows, TOKENS), "BLEU", "source tokens", range(0, 61, 10), title)


def _by_range(rows: Sequence[Mapping[str, Any]], work: re.Pattern[str]) -> Systems:
    systems: Systems = {}
    for row in rows:
        if length := work.fullmatch(row["work"]):
            systems.setdefault(row["system"], {})[length[1].replace(" to ", "–")] = row["value"]
    return systems


def by_length(systems: Systems, unit: str, axis: str, values: range, title: str) -> str:
    """A curve for each system, as SVG. `values` are the marks of the vertical axis."""
    lengths = list(dict.fromkeys(length for found in systems.values() for length in found))
    across = {length: float(index) for index, length in enumerate(lengths)}
    frame = Frame(40, 30, WIDTH - 230, 250, (0, len(lengths) - 1), (values[0], values[-1]))
    colours = {system: index for index, system in enumerate(systems)}
    parts = [
        f'<text class="quiet" x="0" y="{LINE}">{unit}</text>',
        *frame.axes(
            {x: length for length, x in across.items()},
            {float(value): str(value) for value in values},
        ),
        f'<text class="middle quiet" x="{frame.left + frame.width / 2:.0f}" y="318">{axis}</text>',
        *(
            frame.curve(
                [(across[length], one) for length, one in found.items()], colours[name], name
            )
            for name, found in systems.items()
        ),
        *names_beside(
            frame.left + frame.width + 12,
            {name: frame.down(found[lengths[-1]]) for name, found in systems.items()},
            colours,
        ),
    ]
    return svg(title, 324, parts)


# --- Table 1 ---------------------------------------------------------------------------------

SIZE = re.compile(r"n = (\d+), d = 512")


def layer_times(record: Record) -> str:
    """The time of each kind of layer by the length of the sequence, as SVG. Both axes are log."""
    layers: dict[str, list[tuple[float, float]]] = {}
    for row in record["rows"]:
        if row["unit"] == "ms" and (size := SIZE.fullmatch(row["work"])):
            layers.setdefault(row["system"], []).append((log10(int(size[1])), log10(row["value"])))
    lengths = sorted({n for points in layers.values() for n, _ in points})
    times = [time for points in layers.values() for _, time in points]
    low, high = floor(min(times)), ceil(max(times))
    frame = Frame(64, 30, WIDTH - 270, 250, (lengths[0], lengths[-1]), (low, high))
    colours = {layer: index for index, layer in enumerate(layers)}
    parts = [
        f'<text class="quiet" x="0" y="{LINE}">ms</text>',
        *frame.axes(
            {n: f"{10**n:,.0f}" for n in lengths[::3]},
            {power: f"{10.0**power:,g}" for power in range(low, high + 1)},
        ),
        f'<text class="middle quiet" x="{frame.left + frame.width / 2:.0f}" y="318">'
        "length n of the sequence</text>",
        *(frame.curve(points, colours[layer]) for layer, points in layers.items()),
        *names_beside(
            frame.left + frame.width + 12,
            {layer: frame.down(points[-1][1]) for layer, points in layers.items()},
            colours,
        ),
    ]
    machine = "one H200" if record["name"].endswith("cuda") else "one CPU core"
    return svg(f"Milliseconds of each kind of layer by length, d = 512, {machine}", 324, parts)


# --- growth ----------------------------------------------------------------------------------


class Panels(NamedTuple):
    """Two plots side by side: time and memory by one size."""

    size: re.Pattern[str]
    axis: str
    times: Mapping[str, str]
    """The name of the curve of each unit. Without a name it has no label."""
    unit: str
    """Of the times in the plot, which are a thousandth of the record's if it begins with m."""
    log_memory: bool = False


GROWTH = (
    Panels(
        re.compile(r"translate ([\d,]+) sentences"), "sentences in one call",
        {"CPU-µs/output token": "", "µs/output token": ""}, "ms per output token",
    ),
    Panels(
        re.compile(r"decode \d+ sentences of (\d+) tokens"), "tokens of each of 8 sentences",
        {"CPU-µs/output token": "", "µs/output token": ""}, "ms per output token",
    ),
    Panels(
        re.compile(r"train on ([\d,]+) pairs"), "training pairs",
        {"CPU-µs/pair planned": "planned", "CPU-µs/pair read": "read"}, "µs per pair",
        log_memory=True,
    ),
)  # fmt: skip


def growth(record: Record) -> str:
    """Time and memory by the number of sentences, their length, and the training pairs, as SVG."""
    parts: list[str] = []
    top = 0.0
    for panels in GROWTH:
        found: dict[str, list[tuple[float, float]]] = {}
        for row in record["rows"]:
            if size := panels.size.fullmatch(row["work"]):
                point = log10(int(size[1].replace(",", ""))), row["value"]
                found.setdefault(row["unit"], []).append(point)
        if found:
            scale = 1000 if panels.unit.startswith("m") else 1
            times = {
                name: [(x, y / scale) for x, y in found[unit]]
                for unit, name in panels.times.items()
                if unit in found
            }
            memory = {"": found["MiB peak"]}
            parts += _panel(0, top, panels.unit, panels.axis, times, log=False)
            parts += _panel(1, top, "MiB peak", panels.axis, memory, log=panels.log_memory)
            top += 250
    where = "one GPU" if record["name"].endswith("cuda") else "one CPU core"
    return svg(f"Growth of time and memory on {where}", top, parts)


def _panel(
    column: int,
    top: float,
    unit: str,
    axis: str,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    log: bool,
) -> list[str]:
    """One plot of a value by a size on a logarithmic axis; the value from 0, or logarithmic."""
    width = (WIDTH - 164) / 2
    sizes = [x for x, _ in next(iter(curves.values()))]
    values = [y for curve in curves.values() for _, y in curve]
    if log:
        first, last = floor(log10(min(values))), ceil(log10(max(values)))
        round_values = (digit * 10**power for power in range(first, last) for digit in (1, 2, 5))
        marks = {log10(value): f"{value:,}" for value in (*round_values, 10**last)}
        low, high = float(first), float(last)
    else:
        low, high = 0.0, 1.08 * max(values)
        marks = ticks(low, high, most=5)
    left = 48 + column * (width + 92)
    labelled = sizes if len(sizes) < 6 else sizes[::-2]
    frame = Frame(left, top + 30, width, 160, (sizes[0], sizes[-1]), (low, high))
    parts = [
        f'<text class="quiet" x="{left - 48:.0f}" y="{top + LINE:.0f}">{unit}</text>',
        *frame.axes({x: _short(10**x) for x in labelled}, marks),
        f'<text class="middle quiet" x="{left + width / 2:.0f}" y="{top + 228:.0f}">{axis}</text>',
    ]
    for number, (name, points) in enumerate(curves.items()):
        places = [(x, log10(y)) if log else (x, y) for x, y in points]
        parts.append(frame.curve(places, number))
        if name:
            y = frame.down(places[-1][1]) - 8
            parts.append(
                f'<text class="end" x="{left + width:.0f}" y="{y:.0f}">'
                f'<tspan style="fill:{colour(number)}">● </tspan>{name}</text>'
            )
    return parts


def _short(size: float) -> str:
    """10 k for 10,000."""
    for unit, suffix in ((1e6, " M"), (1e4, " k")):
        if size >= 0.999 * unit:
            return f"{size / (1e3 if suffix == ' k' else unit):,.0f}{suffix}"
    return f"{size:,.0f}"


# --- Table 2 ---------------------------------------------------------------------------------


class Cost(NamedTuple):
    """What training has cost so far, as the horizontal axis of a figure."""

    unit: str
    """In the record."""
    scale: float
    axis: str
    """The name of the axis, in `scale` units."""


TIME = Cost("s", 60, "minutes of training")
CPU_FLOPS = Cost("FLOPs", 1e12, "training FLOPs, 10¹²")
GPU_FLOPS = Cost("FLOPs", 1e15, "training FLOPs, 10¹⁵")


def progress(cost: Cost, record: Record) -> str:
    """Perplexity and BLEU of each kind of network by the cost of its training, as SVG."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in record["rows"]:
        if row["work"].startswith("step "):
            points = found.setdefault(row["system"], {})
            points.setdefault(row["work"], {})[row["unit"]] = row["value"]
    colours = {system: index for index, system in enumerate(found)}
    every = [point for points in found.values() for point in points.values()]
    longest = max(point[cost.unit] for point in every) / cost.scale
    best = max(point["BLEU"] for point in every)
    perplexities = [log10(point["perplexity"]) for point in every]
    # Perplexities are shown on a logarithmic axis.
    lowest, highest = min(perplexities), max(perplexities)
    marks = [log10(digit * 10**power) for power in range(5) for digit in (1, 2, 5)]
    powers = {mark: f"{10**mark:,.0f}" for mark in marks if lowest <= mark <= highest}
    width = (WIDTH - 110) / 2
    frames = {
        "perplexity": Frame(44, 54, width, 250, (0, longest), (lowest, highest)),
        "BLEU": Frame(104 + width, 54, width, 250, (0, longest), (0, max(best, 1.0))),
    }
    parts = _legend(colours)
    for result, frame in frames.items():
        log = result == "perplexity"
        parts += [
            f'<text class="quiet" x="{frame.left - 44:.0f}" y="44">{result}</text>',
            *frame.axes(ticks(*frame.x, most=5), powers if log else ticks(*frame.y)),
            f'<text class="middle quiet" x="{frame.left + frame.width / 2:.0f}" y="342">'
            f"{cost.axis}</text>",
        ]
        for system, points in found.items():
            curve = [
                (point[cost.unit] / cost.scale, log10(point[result]) if log else point[result])
                for point in points.values()
            ]
            parts.append(frame.curve(curve, colours[system]))
    return svg(f"Perplexity and BLEU by {cost.axis}", 348, parts)


def _legend(colours: Mapping[str, int]) -> list[str]:
    parts, x = [], 0
    for name, number in colours.items():
        dot = f'<tspan style="fill:{colour(number)}">● </tspan>'
        parts.append(f'<text x="{x}" y="{LINE}">{dot}{name}</text>')
        x += 34 + 7 * len(name)
    return parts


# --- Table 3 ---------------------------------------------------------------------------------

GROUPS = {"A": "heads", "B": "keys", "C": "size", "D": "regularization", "E": "positions"}


class Difference(NamedTuple):
    """The perplexity of a row relative to that of base, in percent."""

    row: str
    paper: float
    ours: float
    margin: float


def relative(record: Record) -> list[Difference]:
    """The differences of the rows that are trained, in the order of the paper."""
    rows = summaries(record)
    base, found = rows["base"].perplexity, []
    for name, row in rows.items():
        ratio = row.perplexity.value / base.value
        # The margin of a ratio, to first order.
        margin = hypot(row.perplexity.margin or 0.0, ratio * (base.margin or 0.0)) / base.value
        paper = PAPER[name][0] / PAPER["base"][0]
        found.append(Difference(name, *(100 * one for one in (paper - 1, ratio - 1, margin))))
    return [one for one in found if one.row != "base"]


def differences_from_base(record: Record) -> str:
    """The perplexity of each row relative to that of base, ours and the paper's, as SVG."""
    shown = relative(record)
    ends = [
        end for _, paper, ours, margin in shown for end in (paper, ours - margin, ours + margin)
    ]
    frame = Frame(150, 30, WIDTH - 170, 0, (min([0.0, *ends]) - 1, max([0.0, *ends]) + 1), (0, 1))
    parts, y = [], frame.top
    for group, rows in groupby(shown, key=lambda one: one.row.partition("-")[0]):
        y += 24 if group in GROUPS else 10
        if group in GROUPS:
            heading = f"({group}) {GROUPS[group]}"
            parts.append(f'<text class="strong" x="0" y="{y:.0f}">{heading}</text>')
        for one in rows:
            y += 20
            name = re.sub(
                "_(.+) =",
                r'<tspan dy="3" style="font-size:10px">\1</tspan><tspan dy="-3"> =</tspan>',
                label(one.row),
            )
            parts.append(f'<text class="end" x="{frame.left - 10:.0f}" y="{y:.0f}">{name}</text>')
            parts += _marks(frame, y - 4, one)
    bottom, rules = y + 12, []
    for value in ticks(*frame.x):
        x, name = frame.across(value), f"{value:+.0f} %".replace("-", "−") if value else "base"
        rules.append(
            f'<line class="rule" x1="{x:.1f}" y1="{frame.top}" x2="{x:.1f}" y2="{bottom:.0f}"/>'
            f'<text class="middle quiet" x="{x:.1f}" y="{bottom + 16:.0f}">{name}</text>'
        )
    for x, series, mark in ((0, 0, "● trained here, 95 % interval"), (230, 7, "◆ the paper")):
        dot = f'<tspan style="fill:{colour(series)}">{mark[0]}</tspan>'
        parts.append(f'<text x="{x}" y="{LINE}">{dot}{mark[1:]}</text>')
    return svg("Perplexity of the rows of Table 3 relative to base", bottom + 22, [*rules, *parts])


def _marks(frame: Frame, y: float, one: Difference) -> list[str]:
    """The paper's value, and ours with its interval."""
    paper, ours, low, high = (
        frame.across(x) for x in (one.paper, one.ours, one.ours - one.margin, one.ours + one.margin)
    )
    return [
        f'<polyline points="{low:.1f},{y:.0f} {high:.1f},{y:.0f}" style="stroke:{colour(0)}"/>',
        f'<circle cx="{ours:.1f}" cy="{y:.0f}" r="4.5" style="fill:{colour(0)}">'
        f"<title>{one.ours:+.1f} ± {one.margin:.1f} %</title></circle>",
        f'<path d="M{paper:.1f} {y - 6:.0f}l6 6-6 6-6-6z" style="fill:{colour(7)}">'
        f"<title>{one.paper:+.1f} % in the paper</title></path>",
    ]
