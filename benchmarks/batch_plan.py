"""The batch plan: pairs planned per second on one core, and the fill of the batches.

    python benchmarks/batch_plan.py [--quick] [--json FILE] [CORPUS ...]

Corpora are directories written by `transept data prepare`. Synthetic lengths that resemble Europarl
in subwords are always measured. The layouts run interleaved. First-fit decreasing, the slow
reference of the packer, packs a few thousand of the same pairs. Times are CPU times, so that other
processes on the machine matter less.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measuring import Goal, Row, parser_of, report
from numpy.typing import NDArray

from transept.data.batching.feed import collate
from transept.data.batching.mixture import Mixture, PairCorpus
from transept.data.batching.plan import START, Fill, Plan, measure
from transept.data.batching.tiles import first_fit_decreasing, pack
from transept.data.config import BatchConfig

LAYOUTS = ("packed", "by_length")
PLANNING_GOAL = 100_000
FILL_GOAL = 0.97


@dataclass
class MadeUp:
    """Synthetic lengths like Europarl's in subwords: about 30, correlated, with a long tail."""

    source_lengths: NDArray[np.int64]
    target_lengths: NDArray[np.int64]
    hash: str = "made up"

    @classmethod
    def of(cls, n_pairs: int) -> "MadeUp":
        """The first `n_pairs` pairs of a fixed random sequence."""
        chance = np.random.default_rng(0)
        source = chance.lognormal(np.log(26), 0.58, n_pairs)
        target = source * chance.lognormal(0, 0.16, n_pairs)
        source, target = (np.clip(np.rint(side), 2, 500) for side in (source, target))
        return cls(source.astype(np.int64), target.astype(np.int64))

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> NDArray[np.uint16]:
        """Dummy ids."""
        return np.ones(self.source_lengths[index], dtype=np.uint16)

    def target(self, index: int) -> NDArray[np.uint16]:
        """Dummy ids."""
        return np.ones(self.target_lengths[index], dtype=np.uint16)


def works(options: argparse.Namespace) -> Iterator[tuple[str, PairCorpus]]:
    """The corpora to plan, by name."""
    yield "made-up lengths", MadeUp.of(options.pairs)
    for directory in options.corpora:
        from transept.data.shards import Corpus

        yield directory.name, Corpus.open(directory)


def timed(work: Callable[[], Fill]) -> tuple[float, Fill]:
    start = time.process_time()
    fill = work()
    return fill.pairs / (time.process_time() - start), fill


def measure_planning(
    name: str, corpus: PairCorpus, options: argparse.Namespace
) -> tuple[list[Row], list[Goal]]:
    """Speed and fill of both layouts, over the first windows of an epoch."""
    speeds: dict[str, list[float]] = {layout: [] for layout in LAYOUTS}
    fills: dict[str, Fill] = {}
    for repeat in range(options.repeats):
        for layout in LAYOUTS:
            # A new plan each time: shuffling the epoch is part of the work.
            plan = Plan(Mixture([corpus]), BatchConfig(layout=layout), seed=repeat)
            speed, fills[layout] = timed(lambda plan=plan: measure(plan, windows=options.windows))
            speeds[layout].append(speed)
    rows = [Row.of(name, layout, speeds[layout], "pairs/CPU-s planned") for layout in LAYOUTS]
    for layout, fill in fills.items():
        for side in ("source", "target"):
            share = getattr(fill, side)
            rows.append(Row.once(name, layout, share, f"{side} fill"))
    packed = fills["packed"]
    tighter = max(packed.source, packed.target)
    return rows, [
        Goal.at_least(f"{name}: pairs planned per second", rows[0].value, PLANNING_GOAL),
        Goal.at_least(f"{name}: fill of the tighter side", tighter, FILL_GOAL),
    ]


def measure_packers(name: str, corpus: PairCorpus, options: argparse.Namespace) -> list[Row]:
    """The number of tiles and the speed of the packer and its reference."""
    source, target = (
        side.astype(np.int32) for side in (corpus.source_lengths, corpus.target_lengths)
    )
    some = np.flatnonzero(np.maximum(source, target) <= 128)[: options.reference_pairs]
    work = f"{name}, {len(some):,} pairs"
    rows = []
    for system, packer in (("pack", pack), ("first-fit decreasing", first_fit_decreasing)):
        start = time.process_time()
        tiles = int(packer(source[some], target[some], 128).max()) + 1
        speed = len(some) / (time.process_time() - start)
        rows.append(Row.once(work, system, tiles, "tiles"))
        rows.append(Row.once(work, system, speed, "pairs/CPU-s packed"))
    return rows


def measure_reading(name: str, corpus: PairCorpus, options: argparse.Namespace) -> Row:
    """The speed of reading and collating planned batches."""
    mixture = Mixture([corpus])
    window = Plan(mixture, BatchConfig(), seed=0).window(0, 0)
    speeds = []
    for _ in range(max(2, options.repeats)):
        start = time.process_time()
        for batch in window[: options.batches]:
            collate(START, batch, batch.micro, mixture)
        pairs = sum(batch.n_pairs for batch in window[: options.batches])
        speeds.append(pairs / (time.process_time() - start))
    return Row.of(name, "packed", speeds, "pairs/CPU-s read")


def main() -> None:
    parser = parser_of(__doc__, quick="fewer pairs: some seconds")
    parser.add_argument("corpora", nargs="*", type=Path, metavar="CORPUS", help="prepared corpora")
    parser.add_argument("--pairs", type=int, default=2**20, help="number of synthetic pairs")
    parser.add_argument("--windows", type=int, help="windows of an epoch to plan; default: all")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--reference-pairs", type=int, default=20_000)
    parser.add_argument("--batches", type=int, default=100, help="batches to read")
    options = parser.parse_args()
    if options.quick:
        options.pairs, options.windows, options.repeats = 2**18, 2, 3
        options.reference_pairs, options.batches = 4_000, 20
    rows: list[Row] = []
    goals: list[Goal] = []
    for name, corpus in works(options):
        planned, aims = measure_planning(name, corpus, options)
        rows += [*planned, *measure_packers(name, corpus, options)]
        rows.append(measure_reading(name, corpus, options))
        goals += aims
    report("batch_plan", rows, goals, ("numpy",), options.json)


if __name__ == "__main__":
    main()
