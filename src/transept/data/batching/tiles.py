"""Packing pairs into tiles, both sides at once.

A tile has `tile` places for source tokens and as many for target tokens of the same pairs. Which
pairs share one matters only by their lengths, so the packer sees no pairs but a table of counts:
how many there are of each (source length, target length). A tile is filled greedily, and the same
combination of lengths is then repeated as often as the table allows: some thousand combinations
make a window of a hundred thousand pairs.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.mixture import Numbers

Lengths = tuple[int, int]
"""Of a pair: source tokens, target tokens."""


def pack(sources: NDArray[np.int32], targets: NDArray[np.int32], tile: int) -> Numbers:
    """The tile that each pair goes to, from 0; no side of a pair may be longer than `tile`."""
    code = (sources.astype(np.int64) * (tile + 1) + targets).astype(_code_type(tile))
    codes, counts = np.unique(code, return_counts=True)
    lengths = (divmod(one, tile + 1) for one in codes.tolist())
    shelf = Shelf(dict(zip(lengths, counts.tolist(), strict=True)), tile)
    placed_code, placed_tile = _lay_out(shelf, tile)
    # The pairs of each code, in their order, go where the packer put that code.
    tile_of = np.empty(len(code), dtype=np.int64)
    tile_of[np.argsort(code, kind="stable")] = placed_tile[np.argsort(placed_code, kind="stable")]
    return tile_of


def first_fit_decreasing(
    sources: NDArray[np.int32], targets: NDArray[np.int32], tile: int
) -> Numbers:
    """A slow, obvious packing to compare with: the longest first, each where it first fits."""
    gaps: list[list[int]] = []
    tile_of = np.empty(len(sources), dtype=np.int64)
    longest = np.maximum(sources, targets)
    for pair in np.argsort(-longest, kind="stable").tolist():
        source, target = int(sources[pair]), int(targets[pair])
        fits = (n for n, gap in enumerate(gaps) if source <= gap[0] and target <= gap[1])
        number = next(fits, len(gaps))
        if number == len(gaps):
            gaps.append([tile, tile])
        gaps[number][0] -= source
        gaps[number][1] -= target
        tile_of[pair] = number
    return tile_of


class Shelf:
    """The pairs not yet packed, as counts of their lengths, quick to ask for what fits."""

    def __init__(self, counts: dict[Lengths, int], tile: int) -> None:
        self._counts = counts
        self._tile = tile
        # Bit t of `_targets[s]`, and bit s of `_sources[t]`: there is a pair of lengths (s, t).
        self._targets = [0] * (tile + 1)
        self._sources = [0] * (tile + 1)
        for source, target in counts:
            self._targets[source] |= 1 << target
            self._sources[target] |= 1 << source
        self._up_to = [(2 << length) - 1 for length in range(tile + 1)]
        self._longest_source = self._longest_target = tile

    def tiles(self) -> Iterator[tuple[Counter[Lengths], int]]:
        """Empty the shelf: what goes into a tile, and how many tiles are filled like that."""
        while self._counts:
            self._lower_bounds()
            content = Counter(self._fill())
            more = min(self._counts.get(pair, 0) // n for pair, n in content.items())
            if more:
                for pair, n in content.items():
                    self._take(pair, n * more)
            yield content, 1 + more

    def _fill(self) -> Iterator[Lengths]:
        source_gap = target_gap = self._tile
        while pair := self._best_fit(source_gap, target_gap):
            self._take(pair, 1)
            source_gap -= pair[0]
            target_gap -= pair[1]
            yield pair

    def _best_fit(self, source_gap: int, target_gap: int) -> Lengths | None:
        """The lengths that leave the least of whichever gap is then larger.

        This wants large pairs first and both sides filled alike, with one rule and no weights.
        """
        targets, sources, up_to = self._targets, self._sources, self._up_to
        least = max(source_gap - self._longest_source, target_gap - self._longest_target, 0)
        for rest in range(least, max(source_gap, target_gap)):
            # One side leaves exactly `rest`; the longest that fits on the other leaves no more.
            source, target = source_gap - rest, target_gap - rest
            best = None
            if source > 0:
                longest = (targets[source] & up_to[target_gap]).bit_length() - 1
                if longest >= target and longest > 0:
                    best = source, longest
            if target > 0:
                longest = (sources[target] & up_to[source_gap]).bit_length() - 1
                if longest >= source and longest > 0 and (not best or longest + target > sum(best)):
                    best = longest, target
            if best:
                return best
        return None

    def _take(self, pair: Lengths, n: int) -> None:
        self._counts[pair] -= n
        if not self._counts[pair]:
            del self._counts[pair]
            source, target = pair
            self._targets[source] ^= 1 << target
            self._sources[target] ^= 1 << source

    def _lower_bounds(self) -> None:
        while not self._targets[self._longest_source]:
            self._longest_source -= 1
        while not self._sources[self._longest_target]:
            self._longest_target -= 1


def _lay_out(shelf: Shelf, tile: int) -> tuple[NDArray[np.integer], Numbers]:
    """The code and the tile of each place for a pair, tile after tile."""
    codes: list[int] = []
    sizes: list[int] = []
    repeats: list[int] = []
    for pairs, times in shelf.tiles():
        codes += [source * (tile + 1) + target for source, target in pairs.elements()]
        sizes.append(pairs.total())
        repeats.append(times)
    size_of_content = np.array(sizes, dtype=np.int64)
    content = np.repeat(np.arange(len(sizes)), repeats)
    size = size_of_content[content]
    start = (np.cumsum(size_of_content) - size_of_content)[content]
    tiles = np.repeat(np.arange(len(size)), size)
    within = np.arange(len(tiles)) - np.repeat(np.cumsum(size) - size, size)
    return np.array(codes, dtype=_code_type(tile))[np.repeat(start, size) + within], tiles


def _code_type(tile: int) -> np.dtype[Any]:
    """Both lengths of a pair as one number. numpy sorts numbers of 16 bits in linear time."""
    return np.min_scalar_type((tile + 1) ** 2 - 1)
