"""Plans a window of the shuffled epoch into batches, in one of two layouts.

`by_length`, the paper's, groups pairs of similar length in padded rows. `packed` distributes
tiles of mixed lengths over batches of one static shape. A window's tiles rarely fill a whole
number of batches. The missing tiles are spread evenly over all micro-batches, so that none is
nearly empty. With B batches per window, less than 1/B of the positions are lost that way.
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
    """The numbers of the pairs in the mixture."""
    sources: NDArray[np.int32]
    """The length of each source sentence in tokens."""
    targets: NDArray[np.int32]
    """The length of each target sentence in tokens."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, which: slice | NDArray[np.generic]) -> "Pairs":
        return Pairs(self.numbers[which], self.sources[which], self.targets[which])

    @classmethod
    def joined(cls, parts: "Sequence[Pairs]") -> "Pairs":
        """Concatenate pairs."""
        return cls(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.targets for part in parts]),
        )

    @property
    def longest(self) -> NDArray[np.int32]:
        """The length of the longer side of each pair."""
        return np.maximum(self.sources, self.targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a micro-batch: rows of token positions for each side."""

    n_pairs: int
    """0 if there is too little data. Every position is then empty."""
    n_rows: int
    """Rows of either side. In the `packed` layout a row is a tile."""
    source_width: int
    """Positions per source row."""
    target_width: int
    """Positions per target row."""
    row_tiles: int
    """Number of rows that attention must treat as one, so that no pair crosses a row boundary."""

    @property
    def source_positions(self) -> int:
        """Source positions, including empty ones."""
        return self.n_rows * self.source_width

    @property
    def target_positions(self) -> int:
        """Target positions, including empty ones."""
        return self.n_rows * self.target_width


@dataclass(frozen=True, slots=True, eq=False)
class MicroPlan:
    """The positions of a micro-batch's pairs, counted through all rows of a side."""

    shape: Shape
    pairs: Pairs
    source_at: Numbers
    """The position of each pair's first source token."""
    target_at: Numbers
    """The position of each pair's first target token."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan:
    """A global batch: the pairs of one weight update, on any number of ranks."""

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
        """Target tokens of all micro-batches. The summed loss is divided by this number."""
        return sum(int(micro.pairs.targets.sum()) for micro in self.micro)

    @property
    def n_positions(self) -> int:
        """Positions of both sides, including empty ones."""
        return sum(
            micro.shape.source_positions + micro.shape.target_positions for micro in self.micro
        )

    @property
    def hash(self) -> str:
        """Equal hashes mean the same pairs in the same order, micro-batch by micro-batch."""
        contents = hashlib.sha256()
        for micro in self.micro:
            contents.update(len(micro.pairs).to_bytes(8, "little"))
            contents.update(micro.pairs.numbers.astype("<i8").tobytes())
        return contents.hexdigest()


Shuffle = Callable[[int, str], Numbers]
"""Returns a permutation of range(n) for a named purpose."""
Planner = Callable[[Pairs, BatchConfig, Shuffle], list[BatchPlan]]
"""Plans the pairs of a window, given in random order, into global batches."""


Span = tuple[int, int]
"""Start and end index among the sorted pairs."""


def by_length(pairs: Pairs, config: BatchConfig, shuffle: Shuffle) -> list[BatchPlan]:
    """Plan a window into batches of pairs of similar length, in random order."""
    # The pairs are in random order, which a stable sort keeps among equal lengths.
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
    """Cut into micro-batches with as many padded rows as the budget allows on each side."""
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
            padded = np.maximum.accumulate(some) * np.arange(1, len(some) + 1)
            rows = int(np.searchsorted(padded, budget, side="right"))
        spans.append((start, start + rows))
        start += rows
    return spans


def _split(spans: list[Span], n: int) -> list[Span]:
    """Halve the longest span until there are n. The last batch of a window may have too few."""
    spans = list(spans)
    while len(spans) < n:
        start, stop = longest = max(spans, key=lambda span: span[1] - span[0])
        middle = (start + stop + 1) // 2
        index = spans.index(longest)
        spans[index : index + 1] = [(start, middle), (middle, stop)]
    return spans


def _padded(pairs: Pairs) -> MicroPlan:
    """Put one pair in each row. An empty micro-batch has one row, so that shapes stay positive."""
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
    """Plan a window into batches with `config.tiles` tiles per micro-batch."""
    long = pairs.longest > config.tile
    tile_of = pack(pairs.sources[~long], pairs.targets[~long], config.tile)
    n_tiles = int(tile_of.max(initial=-1)) + 1
    spans = -(-pairs.longest[long] // config.tile)
    n_batches = _batches_needed(spans, n_tiles, config)
    # Slots are the tiles of all batches, numbered consecutively. A pair gets its (first) slot.
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
    """Return the first slot of each pair longer than a tile: the start of a row of tiles.

    Long pairs go to random batches and, within a batch, to the first rows. Later micro-batches
    then contain none, and attention can process them tile by tile.
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
    """Assign tiles to random slots so that all batches are filled evenly."""
    slots = np.flatnonzero(free)
    batch, micro = np.divmod(slots // config.tiles, config.micro_batches)
    # The number of taken slots in the micro-batch once this slot and those before it are taken.
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
    first = slots % config.tiles * config.tile
    source_at = first + _offsets_in_tile(pairs.sources, slots)
    target_at = first + _offsets_in_tile(pairs.targets, slots)
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


def _offsets_in_tile(lengths: NDArray[np.int32], slots: Numbers) -> Numbers:
    """Return the offset of each pair in its tile."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    return before - before[np.searchsorted(slots, slots)]
