"""The `by_length` layout, the paper's: pairs of similar length together, in padded rows."""

import numpy as np

from transept.data.batching.window import BatchPlan, MicroPlan, Pairs, Shuffle
from transept.data.config import BatchConfig

Span = tuple[int, int]
"""From and to, among the sorted pairs."""


def by_length(pairs: Pairs, config: BatchConfig, shuffle: Shuffle) -> list[BatchPlan]:
    """Plan a window into batches of pairs of similar length; batches come in random order."""
    # Pairs come in random order, and a stable sort keeps it among equal lengths.
    pairs = pairs[np.lexsort((pairs.sources, pairs.longest))]
    spans = _cut(pairs, config)
    each = config.micro_batches
    groups = [spans[start : start + each] for start in range(0, len(spans), each)]
    batches = [
        BatchPlan(tuple(_padded(pairs[start:stop]) for start, stop in _split(group, each)))
        for group in groups
    ]
    return [batches[index] for index in shuffle(len(batches), "batches").tolist()]


def _cut(pairs: Pairs, config: BatchConfig) -> list[Span]:
    """Micro-batches: as many rows as the budget allows when padded to the longest on each side."""
    sides = (
        (pairs.sources, config.source_tokens // config.micro_batches),
        (pairs.targets, config.target_tokens // config.micro_batches),
    )
    spans = []
    start = 0
    while start < len(pairs):
        rows = len(pairs) - start
        for lengths, budget in sides:
            some = lengths[start : start + min(rows, budget // int(lengths[start]))]
            places = np.maximum.accumulate(some) * np.arange(1, len(some) + 1)
            rows = int(np.searchsorted(places, budget, side="right"))
        spans.append((start, start + rows))
        start += rows
    return spans


def _split(spans: list[Span], n: int) -> list[Span]:
    """Halve the longest until there are n: the last batch of a window may have too few."""
    spans = list(spans)
    while len(spans) < n:
        start, stop = longest = max(spans, key=lambda span: span[1] - span[0])
        middle = (start + stop + 1) // 2
        index = spans.index(longest)
        spans[index : index + 1] = [(start, middle), (middle, stop)]
    return spans


def _padded(pairs: Pairs) -> MicroPlan:
    """One pair to a row. A micro-batch without pairs still has a row: shapes stay positive."""
    rows = np.arange(len(pairs))
    source_width = int(pairs.sources.max(initial=1))
    target_width = int(pairs.targets.max(initial=1))
    return MicroPlan(
        pairs=pairs,
        source_at=rows * source_width,
        target_at=rows * target_width,
        n_rows=max(1, len(pairs)),
        source_width=source_width,
        target_width=target_width,
        row_tiles=1,
    )
