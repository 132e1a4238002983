"""A window of the shuffled epoch, and the two layouts of the batches that it is planned into.

`by_length`, the paper's, puts pairs of similar length together, in padded rows. `packed` deals
tiles of mixed lengths out to batches of one static shape. A window's tiles seldom fill a whole
number of batches. The tiles that are missing are spread over all micro-batches alike, so that none
is nearly empty: with B batches to a window, less than 1/B of the places is lost that way.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.mixture import Numbers
from transept.data.batching.tiles import pack
from transept.data.config import BatchConfig


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Some pairs of the mixture, with their lengths."""

    numbers: Numbers
    """Which they are, by their numbers in the mixture."""
    sources: NDArray[np.int32]
    """Tokens of each source sentence."""
    targets: NDArray[np.int32]
    """Tokens of each target sentence."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: slice | NDArray[np.generic]) -> "Pairs":
        return Pairs(self.numbers[which], self.sources[which], self.targets[which])

    @classmethod
    def joined(cls, parts: "Sequence[Pairs]") -> "Pairs":
        """All of these, one after another."""
        return cls(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.targets for part in parts]),
        )

    @property
    def longest(self) -> NDArray[np.int32]:
        """The longer side of each pair."""
        return np.maximum(self.sources, self.targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A micro-batch in figures: rows of places for the tokens of each side."""

    n_pairs: int
    """0 where data are few: every place is then empty."""
    n_rows: int
    """Rows of either side; tiles, in the `packed` layout."""
    source_width: int
    """Places in a source row."""
    target_width: int
    """Places in a target row."""
    row_tiles: int
    """How many rows attention must take as one, so that no pair crosses from a row to the next."""

    @property
    def source_places(self) -> int:
        """Places for source tokens, taken or not."""
        return self.n_rows * self.source_width

    @property
    def target_places(self) -> int:
        """Places for target tokens, taken or not."""
        return self.n_rows * self.target_width


@dataclass(frozen=True, slots=True, eq=False)
class MicroPlan:
    """Where the pairs of a micro-batch stand. Places are counted through all rows of a side."""

    shape: Shape
    pairs: Pairs
    source_at: Numbers
    """The place of each pair's first source token."""
    target_at: Numbers
    """The place of each pair's first target token."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan:
    """A global batch: what one update of the weights sees, whoever computes it."""

    micro: tuple[MicroPlan, ...]

    @property
    def n_pairs(self) -> int:
        """Pairs of all micro-batches."""
        return sum(len(micro.pairs) for micro in self.micro)

    @property
    def n_source_tokens(self) -> int:
        """Source tokens of all micro-batches."""
        return sum(int(micro.pairs.sources.sum()) for micro in self.micro)

    @property
    def n_target_tokens(self) -> int:
        """Target tokens of all micro-batches: what the sum of losses is divided by."""
        return sum(int(micro.pairs.targets.sum()) for micro in self.micro)

    @property
    def n_places(self) -> int:
        """Places for tokens of both sides, taken or not."""
        return sum(micro.shape.source_places + micro.shape.target_places for micro in self.micro)

    @property
    def hash(self) -> str:
        """Equal hashes mean the same pairs in the same order, micro-batch by micro-batch."""
        contents = hashlib.sha256()
        for micro in self.micro:
            contents.update(len(micro.pairs).to_bytes(8, "little"))
            contents.update(micro.pairs.numbers.astype("<i8").tobytes())
        return contents.hexdigest()


Shuffle = Callable[[int, str], Numbers]
"""A permutation of the numbers below n, for the purpose named."""
Planner = Callable[[Pairs, BatchConfig, Shuffle], list[BatchPlan]]
"""Plans the pairs of a window, which come in random order, into global batches."""


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
    shape = Shape(
        n_pairs=len(pairs),
        n_rows=max(1, len(pairs)),
        source_width=source_width,
        target_width=target_width,
        row_tiles=1,
    )
    return MicroPlan(shape, pairs, rows * source_width, rows * target_width)


def packed(pairs: Pairs, config: BatchConfig, shuffle: Shuffle) -> list[BatchPlan]:
    """Plan a window into batches of `config.tiles` tiles to a micro-batch."""
    long = pairs.longest > config.tile
    tile_of = pack(pairs.sources[~long], pairs.targets[~long], config.tile)
    n_tiles = int(tile_of.max(initial=-1)) + 1
    spans = -(-pairs.longest[long] // config.tile)
    n_batches = _batches_needed(spans, n_tiles, config)
    # The tiles of all batches, numbered through, are slots. A pair is given its (first) slot.
    slots = np.empty(len(pairs), dtype=np.int64)
    slots[long] = _deal_long(len(spans), n_batches, config, shuffle)
    free = _free_slots(slots[long], spans, n_batches, config)
    slots[~long] = _deal_tiles(n_tiles, free, config, shuffle)[tile_of]
    order = np.argsort(slots, kind="stable")
    return _batches(pairs[order], slots[order], n_batches, config)


def _batches_needed(spans: NDArray[np.int32], n_tiles: int, config: BatchConfig) -> int:
    slots = config.tiles * config.micro_batches
    by_tiles = -(-(n_tiles + int(spans.sum())) // slots)
    by_rows = -(-len(spans) * config.row_tiles // slots)
    return max(by_tiles, by_rows)


def _deal_long(n_long: int, n_batches: int, config: BatchConfig, shuffle: Shuffle) -> Numbers:
    """The first slot of each pair that is longer than a tile: where a row of tiles begins.

    They go to random batches; within a batch, to the first rows. The later micro-batches then
    hold none, and can be attended to tile by tile.
    """
    rows = config.tiles * config.micro_batches // config.row_tiles
    batch = np.sort(shuffle(n_batches * rows, "long")[:n_long] // rows)
    row = np.arange(n_long) - np.searchsorted(batch, batch)
    return (batch * rows + row) * config.row_tiles


def _free_slots(
    firsts: Numbers, spans: NDArray[np.int32], n_batches: int, config: BatchConfig
) -> NDArray[np.bool_]:
    free = np.ones(n_batches * config.tiles * config.micro_batches, dtype=np.bool_)
    steps = np.arange(config.row_tiles)
    free[(firsts[:, None] + steps)[steps < spans[:, None]]] = False
    return free


def _deal_tiles(
    n_tiles: int, free: NDArray[np.bool_], config: BatchConfig, shuffle: Shuffle
) -> Numbers:
    """The slot of each tile: at random, and such that all batches are filled alike."""
    slots = np.flatnonzero(free)
    batch, micro = np.divmod(slots // config.tiles, config.micro_batches)
    # How full its micro-batch is once a slot is taken, the slots before it being taken.
    by_micro = free.reshape(-1, config.tiles)
    taken = np.count_nonzero(~by_micro, axis=1)
    order_among_free = np.cumsum(by_micro, axis=1).flatten()[slots]
    level = taken[slots // config.tiles] + order_among_free
    chosen = slots[np.lexsort((batch, micro, level))[:n_tiles]]
    return chosen[shuffle(n_tiles, "tiles")]


def _batches(pairs: Pairs, slots: Numbers, n_batches: int, config: BatchConfig) -> list[BatchPlan]:
    """Cut pairs that are sorted by slot into micro-batches and batches."""
    n_micro = n_batches * config.micro_batches
    bounds = np.searchsorted(slots, np.arange(n_micro + 1) * config.tiles).tolist()
    first_place = slots % config.tiles * config.tile
    source_at = first_place + _places_in_tile(pairs.sources, slots)
    target_at = first_place + _places_in_tile(pairs.targets, slots)
    long = pairs.longest > config.tile
    micros = [
        MicroPlan(
            Shape(
                n_pairs=stop - start,
                n_rows=config.tiles,
                source_width=config.tile,
                target_width=config.tile,
                row_tiles=config.row_tiles if long[start:stop].any() else 1,
            ),
            pairs[start:stop],
            source_at[start:stop],
            target_at[start:stop],
        )
        for start, stop in pairwise(bounds)
    ]
    each = config.micro_batches
    return [BatchPlan(tuple(micros[i : i + each])) for i in range(0, n_micro, each)]


def _places_in_tile(lengths: NDArray[np.int32], slots: Numbers) -> Numbers:
    """Where each pair begins in its tile, after those before it."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    return before - before[np.searchsorted(slots, slots)]
