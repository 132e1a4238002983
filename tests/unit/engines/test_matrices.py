"""Matrices in each memory layout."""

from functools import partial

import pytest
import torch

from transept.engines.native.weights import (
    PACKED_ROWS,
    MakeMatrix,
    Prepacked,
    Transposed,
    Unchanged,
)

assert_close = partial(torch.testing.assert_close, atol=1e-4, rtol=1e-4)
LAYOUTS = [
    Unchanged,
    Transposed,
    Prepacked.by_onednn,
    *[Prepacked.by_mkl] * torch.backends.mkl.is_available(),
]


@pytest.mark.parametrize("n_rows", [1, 2, 4, 33, PACKED_ROWS, PACKED_ROWS + 1])
@pytest.mark.parametrize("shape", [(24, 16), (5, 3), (300, 70)])
@pytest.mark.parametrize("make", LAYOUTS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_matrix_layouts_compute_same_product(
    make: MakeMatrix, has_bias: bool, shape: tuple[int, int], n_rows: int
) -> None:
    n_outputs, n_inputs = shape
    weight, x, y = torch.randn(shape), torch.randn(n_rows, n_inputs), torch.randn(n_rows, n_outputs)
    bias = torch.randn(n_outputs) if has_bias else None
    expected = x @ weight.T + (0 if bias is None else bias)
    matrix = make(weight, bias)
    assert_close(matrix(x), expected)
    assert_close(matrix(x.T.contiguous().T), expected)
    out = torch.full_like(y, torch.nan)
    matrix.into(out, x)
    assert_close(out, expected)
    assert_close(matrix.onto(y.clone(), x), y + expected)
