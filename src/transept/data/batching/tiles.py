"""Packs pairs into tiles, both sides at once.

A tile has `tile` positions for source tokens and as many for target tokens of the same pairs.
Only lengths matter for packing, so the packer works on a table of counts: how many pairs there
are of each (source length, target length). It fills a tile greedily, then repeats the same
combination of lengths as often as the table allows. A few thousand combinations cover a window
of a hundred thousand pairs.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transept.data.batching.mixture import Numbers

Lengths = tuple[int, int]
"""Source and target tokens of a pair."""


def pack(sources: NDArray[np.int32], targets: NDArray[np.int32], tile: int) -> Numbers:
    """Return the tile of each pair, from 0. No side of a pair may be longer than `tile`."""
    code = (sources.astype(np.int64) * (tile + 1) + targets).astype(_code_type(tile))
    codes, counts = np.unique(code, return_counts=True)
    lengths = (divmod(one, tile + 1) for one in codes.tolist())
    counted = LengthCounts(dict(zip(lengths, counts.tolist(), strict=True)), tile)
    placed_code, placed_tile = _lay_out(counted, tile)
    # The pairs of each code, in order, go to the tiles that the packer assigned to that code.
    tile_of = np.empty(len(code), dtype=np.int64)
    tile_of[np.argsort(code, kind="stable")] = placed_tile[np.argsort(placed_code, kind="stable")]
    return tile_of


def first_fit_decreasing(
    sources: NDArray[np.int32], targets: NDArray[np.int32], tile: int
) -> Numbers:
    """Pack the longest pairs first, each where it first fits: a slow, simple reference."""
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


class LengthCounts:
    """Counts of the unpacked pairs by length, with a fast search for the best fit."""

    def __init__(self, counts: dict[Lengths, int], tile: int) -> None:
        self._counts = counts
        self._tile = tile
        # Bit t of `_targets[s]` and bit s of `_sources[t]` mean: a pair of lengths (s, t) exists.
        self._targets = [0] * (tile + 1)
        self._sources = [0] * (tile + 1)
        for source, target in counts:
            self._targets[source] |= 1 << target
            self._sources[target] |= 1 << source
        self._up_to = [(2 << length) - 1 for length in range(tile + 1)]
        self._longest_source = self._longest_target = tile

    def tiles(self) -> Iterator[tuple[Counter[Lengths], int]]:
        """Pack all pairs: yield each tile's content and how many tiles have this content."""
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
        """Return the lengths that minimize the larger of the two remaining gaps.

        This single rule prefers large pairs and fills both sides evenly.
        """
        targets, sources, up_to = self._targets, self._sources, self._up_to
        least = max(source_gap - self._longest_source, target_gap - self._longest_target, 0)
        for rest in range(least, max(source_gap, target_gap)):
            # One side leaves exactly `rest`. The longest fit on the other leaves at most that.
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


def _lay_out(counted: LengthCounts, tile: int) -> tuple[NDArray[np.integer], Numbers]:
    """Return the code and the tile of every packed pair, tile by tile."""
    codes: list[int] = []
    sizes: list[int] = []
    repeats: list[int] = []
    for pairs, times in counted.tiles():
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
    """The dtype for both lengths as one number. numpy sorts 16-bit numbers in linear time."""
    return np.min_scalar_type((tile + 1) ** 2 - 1)
