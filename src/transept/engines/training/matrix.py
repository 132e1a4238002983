"""A weight matrix in two precisions, and the gradient that is added up for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import nn

from transept.shapes import Float, Tensor


@dataclass(frozen=True, slots=True)
class Matrix:
    """What `nn.Linear` holds, with gradients."""

    value: Float[Tensor, "O I"]
    """In the type that matrices are multiplied in: a copy of the master weight."""
    gradient: Float[Tensor, "O I"]
    """In single precision, added to."""
    bias: Float[Tensor, " O"] | None = None
    """In the type that matrices are multiplied in."""
    d_bias: Float[Tensor, " O"] | None = None
    """In single precision. It is added to where ∂/∂(x Wᵀ + b) is made, not in `backward`."""

    @classmethod
    def of(cls, linear: nn.Linear, copies: "Copies") -> "Matrix":
        """The matrix of a module, and its bias if there is one."""
        weight, bias = linear.weight, cast(Tensor | None, linear.bias)
        if bias is None:
            return cls(copies.of([weight]), gradient_of(weight))
        return cls(copies.of([weight]), gradient_of(weight), copies.of([bias]), gradient_of(bias))

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x Wᵀ + b`."""
        return x @ self.value.T if self.bias is None else torch.addmm(self.bias, x, self.value.T)

    def add_bias_gradient(self, d_out: Float[Tensor, "N O"]) -> None:
        """Add Σ ∂/∂(x Wᵀ + b) to the gradient of the bias, if there is one."""
        if self.d_bias is not None:
            self.d_bias.add_(d_out.sum(0, dtype=self.d_bias.dtype))

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
