"""The expected time of a training step on 8, 64 and 512 GPUs: a model with its assumptions.

Step times are measured on one GPU (benchmarks/results/gpu_training.json), and bytes are counted.
The bandwidths are assumptions, defined below as constants. Nothing here was measured on more than
one GPU.

    python benchmarks/scaling_plan.py                      print the tables
    python benchmarks/scaling_plan.py --network 10         another bandwidth, in GB/s per GPU
    python benchmarks/scaling_plan.py --write              write them to docs/internals/scaling.md
    python benchmarks/scaling_plan.py --check              check whether that page agrees
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path

import torch

from transept import ModelConfig, Transformer

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "internals" / "scaling.md"
RESULTS = ROOT / "benchmarks" / "results" / "gpu_training.json"
MARKERS = re.compile(r"(<!-- scaling_plan -->\n).*?(<!-- /scaling_plan -->)", re.DOTALL)

GPUS = (1, 8, 64, 512)
PER_NODE = 8
NVLINK = 350e9
"""Bytes per second and GPU in an all-reduce within a machine: assumed (450 in the data sheet)."""
NETWORK = 40e9
"""Bytes per second and GPU between machines: assumed, for one 400 Gbit/s card per GPU (at most
50 GB/s)."""
HOP = 10e-6
"""Seconds of latency per doubling of the machines, twice per reduction: assumed."""
BACKWARD = 0.6
"""The share of a micro-batch's time that can overlap with communication: assumed."""

PAPER_BATCH = 25_000
LARGE_BATCH = 400_000
"""Target tokens per batch up to which larger batches need fewer steps: from the literature."""
SMALLEST = 256
"""Minimum positions of a micro-batch: two tiles, for a sentence of batch.max_length = 250."""
PAPER_TOKENS = {"base": 100_000 * PAPER_BATCH, "big": 300_000 * PAPER_BATCH}
FIXED = 1.7e-3
"""Seconds of a base step that do not depend on its tokens: Adam, copies, zeroing, gaps. Measured
(docs/internals/performance-log.md); proportional to the parameters."""


@dataclass(frozen=True)
class Card:
    """One GPU with one model, as measured."""

    name: str
    parameters: int
    tokens_per_second: float

    def compute(self, tokens: float) -> float:
        """Seconds for a number of target tokens: a fixed part, and a constant rate."""
        whole = PAPER_BATCH / self.tokens_per_second
        return self.fixed + (whole - self.fixed) * tokens / PAPER_BATCH

    @property
    def fixed(self) -> float:
        return FIXED * self.parameters / count("base")


@cache
def count(name: str) -> int:
    """The number of parameters of a preset."""
    with torch.device("meta"):
        return Transformer(ModelConfig.preset(name)).n_parameters()


def reduction(n_bytes: float, n: int, network: float) -> float:
    """Seconds of an all-reduce: within each machine, then between machines, one part per GPU."""
    inside = min(n, PER_NODE)
    machines = n // inside
    seconds = 2 * (inside - 1) / inside * n_bytes / NVLINK
    if machines > 1:
        seconds += 2 * (machines - 1) / machines * n_bytes / inside / network
        seconds += 2 * log2(machines) * HOP
    return seconds


@dataclass(frozen=True)
class Step:
    """A step on n GPUs, in seconds."""

    compute: float
    reduction: float
    overlapped: float
    """The part of the reduction that does not overlap with the backward pass."""


def step(card: Card, n: int, batch: int, bytes_each: int, network: float) -> Step:
    compute = card.compute(batch / n)
    travel = reduction(card.parameters * bytes_each, n, network) if n > 1 else 0.0
    return Step(compute, travel, max(0.0, travel - BACKWARD * (compute - card.fixed)))


def cards() -> list[Card]:
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]
    rates = {
        row["work"]: row["value"]
        for row in rows
        if row["system"] == "transept" and row["unit"] == "target tokens/s"
    }
    return [Card(name, count(name), rates[name]) for name in ("base", "big")]


HEADER = [
    "| GPUs | batch | tokens per GPU | compute | all-reduce fp32 | bf16 | step as built "
    "| overlapped | tokens/s | efficiency | the paper's tokens |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
]


def table(card: Card, network: float) -> list[str]:
    lines = [f"**{card.name}**: {card.parameters:,} parameters, times in ms", "", *HEADER]
    one = PAPER_BATCH / card.compute(PAPER_BATCH)
    for n in GPUS:
        batches = {PAPER_BATCH, LARGE_BATCH, PAPER_BATCH * n} if n > 1 else {PAPER_BATCH}
        for batch in sorted(batches):
            if batch / n < SMALLEST:
                lines.append(f"| {n} | {batch:,} | fewer than {SMALLEST} |" + " |" * 8)
                continue
            full, half = (step(card, n, batch, b, network) for b in (4, 2))
            seconds = full.compute + half.reduction
            rate = batch / seconds
            times = (full.compute, full.reduction, half.reduction, seconds)
            cells = [
                *(f"{1e3 * value:.2f}" for value in (*times, half.compute + half.overlapped)),
                f"{rate / 1e6:.1f} M",
                f"{rate / one / n:.0%}",
                duration(PAPER_TOKENS[card.name] / rate),
            ]
            share = f"{batch / n:,.0f}"
            lines.append(f"| {n} | {batch:,} | {share} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.1f} min"


def plan(network: float) -> str:
    lines = [
        f"Assumed: {NVLINK / 1e9:.0f} GB/s per GPU inside a machine of {PER_NODE}, "
        f"{network / 1e9:.0f} GB/s per GPU between machines, {1e6 * HOP:.0f} µs per hop, "
        f"{BACKWARD:.0%} of compute to hide a reduction under. Measured, on one H200: "
        + ", ".join(f"{c.name} {c.tokens_per_second:,.0f} target tokens/s" for c in cards())
        + ".",
        "",
    ]
    for card in cards():
        lines += table(card, network)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--network", type=float, default=NETWORK / 1e9, help="GB/s per GPU")
    parser.add_argument(
        "--write", action="store_true", help="write the tables to docs/internals/scaling.md"
    )
    parser.add_argument("--check", action="store_true", help="fail if the page differs")
    arguments = parser.parse_args()
    text = plan(1e9 * arguments.network)
    if not (arguments.write or arguments.check):
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    new = MARKERS.sub(lambda found: found[1] + text + found[2], page)
    if arguments.check and new != page:
        sys.exit(f"{PAGE} is out of date: run {Path(__file__).name} --write")
    if arguments.write:
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
