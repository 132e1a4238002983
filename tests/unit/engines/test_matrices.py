"""Matrices in each memory layout."""

import pytest
import torch

from transept.engines.native.weights import MakeMatrix, Reordered, Transposed, Unchanged

SHAPES = [(24, 16), (1024, 3)]
"""Outputs and inputs. Rows of 1,024 numbers are stored at a larger distance."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("make", [Unchanged, Transposed, Reordered])
@pytest.mark.parametrize("has_bias", [False, True])
def test_matrix_layouts_compute_same_product(
    make: MakeMatrix, has_bias: bool, shape: tuple[int, int]
) -> None:
    n_outputs, n_inputs = shape
    weight, x, y = torch.randn(shape), torch.randn(4, n_inputs), torch.randn(4, n_outputs)
    bias = torch.randn(n_outputs) if has_bias else None
    expected = x @ weight.T + (0 if bias is None else bias)
    matrix = make(weight, bias)
    torch.testing.assert_close(matrix(x), expected)
    out = torch.full_like(y, torch.nan)
    matrix.into(out, x)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(matrix.onto(y.clone(), x), y + expected)
