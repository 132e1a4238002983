"""A matrix, laid out as the device likes it.

A step's matrices are large and its rows are few, so how a matrix lies in memory decides how long
a product takes.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch.nn import functional as F

from transept.shapes import Float, Tensor

LARGE = 2**19
"""A matrix of so many numbers is quicker in oneDNN's own layout, in spite of a slower start."""


@runtime_checkable
class PreparedMatrix(Protocol):
    """A linear transformation, laid out for decoding."""

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`, the residual sum. `y` may be used up."""


class AsItLies:
    """Out by in, as the model has it: for a single row, and for a GPU."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        return F.linear(x, self.weight, self.bias)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        if self.bias is None:
            torch.mm(x, self.weight.T, out=out)
        else:
            torch.addmm(self.bias, x, self.weight.T, out=out)

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return y + F.linear(x, self.weight, self.bias)


class Transposed:
    """In by out: a third quicker on a CPU with 2 to 128 rows."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self.weight, self.bias = weight.T.contiguous(), bias

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        if self.bias is None:
            return torch.mm(x, self.weight)
        return torch.addmm(self.bias, x, self.weight)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        if self.bias is None:
            torch.mm(x, self.weight, out=out)
        else:
            torch.addmm(self.bias, x, self.weight, out=out)

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        if self.bias is not None:
            y.add_(self.bias)
        return y.addmm_(x, self.weight)


class Reordered:
    """In oneDNN's own layout: large matrices gain another tenth, at 4 rows a third."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self.weight, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight), bias
        self._product = torch.ops.mkldnn._linear_pointwise.default

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        product: Tensor = self._product(x, self.weight, self.bias, "none", [], "")
        return product

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        out.copy_(self(x))

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return self(x).add_(y)


MakeMatrix = Callable[[Tensor, Tensor | None], PreparedMatrix]


def for_several_rows(
    weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None
) -> PreparedMatrix:
    """A copy of the weight, in the layout that is quickest on a CPU."""
    can_reorder = weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()
    if weight.numel() >= LARGE and can_reorder:
        return Reordered(weight, bias)
    return Transposed(weight, bias)
