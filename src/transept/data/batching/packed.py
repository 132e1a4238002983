"""The `packed` layout: tiles of mixed lengths, dealt out to batches of one static shape.

A window's tiles seldom fill a whole number of batches. The tiles that are missing are spread over
all micro-batches alike, so that none is nearly empty: with B batches to a window, less than 1/B of
the places is lost that way.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.mixture import Numbers
from transept.data.batching.tiles import pack
from transept.data.batching.window import BatchPlan, MicroPlan, Pairs, Shuffle
from transept.data.config import BatchConfig


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
            pairs=pairs[start:stop],
            source_at=source_at[start:stop],
            target_at=target_at[start:stop],
            n_rows=config.tiles,
            source_width=config.tile,
            target_width=config.tile,
            row_tiles=config.row_tiles if long[start:stop].any() else 1,
        )
        for start, stop in pairwise(bounds)
    ]
    each = config.micro_batches
    return [BatchPlan(tuple(micros[i : i + each])) for i in range(0, n_micro, each)]


def _places_in_tile(lengths: NDArray[np.int32], slots: Numbers) -> Numbers:
    """Where each pair begins in its tile, after those before it."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    return before - before[np.searchsorted(slots, slots)]
