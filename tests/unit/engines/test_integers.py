"""Matrix products in 8-bit integers."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from transept.engines.native.integers import (
    LARGEST_INPUT,
    LARGEST_WEIGHT,
    WAYS,
    InIntegers,
    is_exact,
)
from transept.shapes import Tensor

EXACT = [way for way in WAYS if is_exact(way)]
SHAPES = [(24, 16), (96, 64), (7, 250), (64, 2048)]


def slow_product(weight: list[list[int]], x: list[list[int]]) -> list[list[int]]:
    return [[sum(a * b for a, b in zip(row, w, strict=True)) for w in weight] for row in x]


def rounded(row: list[float], largest: int) -> tuple[list[int], float]:
    """A row in integers, and its unit."""
    unit = max(map(abs, row)) / largest or 1.0
    return [round(value / unit) for value in row], unit


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize("shape", SHAPES)
def test_way_gives_integers_of_slow_product(way: str, shape: tuple[int, int]) -> None:
    _, n_inputs = shape
    weight = torch.randint(-LARGEST_WEIGHT, LARGEST_WEIGHT + 1, shape, dtype=torch.int8)
    weight[0], weight[1], weight[2] = LARGEST_WEIGHT, -LARGEST_WEIGHT, 0
    scales = torch.rand(len(weight))
    for n_rows in (1, 3, 8, 17):
        x = torch.randint(-LARGEST_INPUT, LARGEST_INPUT + 1, (n_rows, n_inputs))
        x[0] = LARGEST_INPUT
        expected = torch.tensor(slow_product(weight.tolist(), x.tolist())) * scales
        nearly = x + 0.98 * (torch.rand(x.shape) - 0.5) * (x.abs() < LARGEST_INPUT)
        assert torch.equal(WAYS[way](weight, scales)(nearly), expected)


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize("has_bias", [False, True])
def test_matrix_in_integers_equals_slow_rounding(way: str, has_bias: bool) -> None:
    weight, x, y = torch.randn(24, 16), torch.randn(4, 16), torch.randn(4, 24)
    weight[3], x[2] = 0, 0
    bias = torch.randn(24) if has_bias else None
    rows, inputs = ([rounded(row, n) for row in part.tolist()] for part, n in
                    ((weight, LARGEST_WEIGHT), (x, LARGEST_INPUT)))  # fmt: skip
    integers = slow_product([row for row, _ in rows], [row for row, _ in inputs])
    units = torch.tensor([unit for _, unit in inputs])[:, None] * torch.tensor(
        [unit for _, unit in rows]
    )
    expected = torch.tensor(integers) * units + (0 if bias is None else bias)
    matrix = InIntegers(weight, bias, {1: way})
    torch.testing.assert_close(matrix(x), expected)
    out = torch.full_like(y, torch.nan)
    matrix.into(out, x)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(matrix.onto(y.clone(), x), y + expected)


@pytest.mark.parametrize("ways", [{1: few, 3: many} for few in EXACT for many in EXACT])
def test_row_does_not_depend_on_other_rows(ways: dict[int, str]) -> None:
    weight, bias, x = torch.randn(80, 96), torch.randn(80), torch.randn(12, 96)
    x *= torch.logspace(-3, 3, 12)[:, None]
    matrix = InIntegers(weight, bias, ways)
    together = matrix(x)
    for first, last in ((0, 1), (5, 6), (2, 4), (3, 12)):
        assert torch.equal(matrix(x[first:last]), together[first:last])


@pytest.mark.parametrize("way", EXACT)
def test_threads_share_a_matrix(way: str) -> None:
    matrix = InIntegers(torch.randn(64, 32), None, {1: way})
    inputs = [torch.randn(1 + n % 15, 32) for n in range(120)]
    expected = [matrix(x) for x in inputs]
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(matrix, inputs)]
    assert all(map(torch.equal, found, expected))


@pytest.mark.parametrize("way", EXACT)
def test_infinite_bias_and_missing_numbers_pass_through(way: str) -> None:
    bias = torch.zeros(8)
    bias[3] = -torch.inf
    x = torch.randn(3, 32)
    x[1, 4] = torch.nan
    found = InIntegers(torch.randn(8, 32), bias, {1: way})(x)
    assert found[:, 3].isneginf().tolist() == [True, False, True]
    assert found[1].isnan().all()
    assert found[[0, 2]][:, [0, 1, 2, 4, 5, 6, 7]].isfinite().all()


def test_inexact_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on x86_64 without VNNI: sums of two products saturate at 16 bits."""

    class Saturating:
        most_rows = 99

        def __init__(self, weight: Tensor, scales: Tensor) -> None:
            self._weight = weight.float() * scales[:, None]

        def __call__(self, x: Tensor) -> Tensor:
            products: Tensor = (x[:, None] + 128) * self._weight
            pairs = products.unflatten(2, (-1, 2)).sum(3)
            summed: Tensor = pairs.clamp(-(2**15), 2**15 - 1).sum(2)
            return summed - 128 * self._weight.sum(1)

    class Missing(Saturating):
        def __init__(self, weight: Tensor, scales: Tensor) -> None:
            torch.ops.transept.no_such_operator(weight)

    monkeypatch.setattr(
        "transept.engines.native.integers.WAYS", {"saturating": Saturating, "missing": Missing}
    )
    assert not is_exact("saturating")
    assert not is_exact("missing")
