"""Matrices in each memory layout."""

import pytest
import torch

from transept.engines.native.weights import MakeMatrix, Reordered, Transposed, Unchanged


@pytest.mark.parametrize("make", [Unchanged, Transposed, Reordered])
@pytest.mark.parametrize("has_bias", [False, True])
def test_matrix_layouts_compute_same_product(make: MakeMatrix, has_bias: bool) -> None:
    weight, x, y = torch.randn(24, 16), torch.randn(4, 16), torch.randn(4, 24)
    bias = torch.randn(24) if has_bias else None
    expected = x @ weight.T + (0 if bias is None else bias)
    matrix = make(weight, bias)
    torch.testing.assert_close(matrix(x), expected)
    out = torch.full_like(y, torch.nan)
    matrix.into(out, x)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(matrix.onto(y.clone(), x), y + expected)
