from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from transept.data.batching.mixture import Numbers
from transept.data.batching.tiles import first_fit_decreasing, pack

Lengths = NDArray[np.int32]


def realistic(n: int, ratio: float = 1.05) -> tuple[Lengths, Lengths]:
    """Lengths in subwords like Europarl's: about 30, correlated, with a long tail."""
    chance = np.random.default_rng(0)
    source = chance.lognormal(np.log(26), 0.55, n)
    target = source * ratio * chance.lognormal(0, 0.16, n)
    return _whole(source), _whole(target)


def _whole(lengths: NDArray[np.float64]) -> Lengths:
    return np.clip(np.rint(lengths), 2, 128).astype(np.int32)


def fill(tiles: Numbers, lengths: Lengths) -> float:
    return float(lengths.sum() / ((tiles.max() + 1) * 128))


def packed(sources: list[int], targets: list[int]) -> list[int]:
    tiles = pack(np.array(sources, np.int32), np.array(targets, np.int32), tile=128)
    return [int(tile) for tile in tiles]


def test_pairs_that_fit_together_share_a_tile() -> None:
    first, second, third, fourth = packed([100, 28, 64, 64], [64, 64, 28, 100])
    assert first == second != third == fourth


def test_full_side_closes_the_tile() -> None:
    assert sorted(packed([128, 1], [1, 1])) == [0, 1]


def test_no_pairs_need_no_tile() -> None:
    assert packed([], []) == []


def test_best_fit_fills_both_sides() -> None:
    tiles = packed([100, 28, 28, 27], [100, 20, 28, 28])
    assert tiles[0] == tiles[2]


@pytest.mark.parametrize("packer", [pack, first_fit_decreasing])
@pytest.mark.parametrize("tile", [128, 300])
def test_no_tile_overflows_on_either_side(
    packer: Callable[[Lengths, Lengths, int], Numbers], tile: int
) -> None:
    source, target = realistic(2000)
    tiles = packer(source, target, tile)
    assert np.bincount(tiles, source).max() <= tile
    assert np.bincount(tiles, target).max() <= tile
    assert set(tiles) == set(range(tiles.max() + 1))


@pytest.mark.parametrize("ratio", [0.6, 1.0, 1.05, 2.0])
def test_pack_is_as_good_as_first_fit_decreasing(ratio: float) -> None:
    source, target = realistic(4000, ratio)
    needed = pack(source, target, 128).max() + 1
    assert needed <= 1.01 * (first_fit_decreasing(source, target, 128).max() + 1)


@pytest.mark.parametrize("ratio", [0.9, 1.0, 1.1])
def test_a_realistic_corpus_fills_99_percent_of_the_tighter_side(ratio: float) -> None:
    source, target = realistic(2**16, ratio)
    tiles = pack(source, target, 128)
    assert max(fill(tiles, source), fill(tiles, target)) > 0.99
