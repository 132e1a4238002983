"""A weight matrix in two precisions, and the gradient that is added up for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from transept.shapes import Float, Tensor


@dataclass(frozen=True, slots=True)
class Matrix:
    """What `nn.Linear` holds, without the bias."""

    value: Float[Tensor, "O I"]
    """In the type that matrices are multiplied in: a copy of the master weight."""
    gradient: Float[Tensor, "O I"]
    """In single precision, added to."""

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x Wᵀ`."""
        return x @ self.value.T

    def backward(
        self, d_out: Float[Tensor, "N O"], x: Float[Tensor, "N I"], dx: Float[Tensor, "N I"] | None
    ) -> Float[Tensor, "N I"]:
        """Add to the gradient; give ∂/∂x, added to `dx` where there is one."""
        accumulate(self.gradient, d_out.T, x)
        return d_out @ self.value if dx is None else dx.addmm_(d_out, self.value)


def accumulate(
    into: Float[Tensor, "O I"], a: Float[Tensor, "O N"], b: Float[Tensor, "N I"]
) -> None:
    """Add a b, which is never rounded to less than the precision of `into`."""
    if a.dtype == into.dtype:
        into.addmm_(a, b)
    else:
        torch.addmm(into, a, b, out_dtype=into.dtype, out=into)


class Copies:
    """Copies of the weights in the type that matrices are multiplied in."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._masters: list[Tensor] = []
        self._copies: list[Tensor] = []

    def of(self, masters: Sequence[Tensor]) -> Tensor:
        """A copy of these weights, stacked; `refresh` keeps it true."""
        copy = torch.cat([master.detach() for master in masters]).to(self.dtype)
        self._masters += [master.detach() for master in masters]
        self._copies += copy.split([len(master) for master in masters])
        return copy

    def refresh(self) -> None:
        """Copy what the optimizer made of the weights."""
        torch._foreach_copy_(self._copies, self._masters)


def gradient_of(parameter: Tensor) -> Tensor:
    """The tensor in which a parameter's gradient is added up: the same one for ever."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
