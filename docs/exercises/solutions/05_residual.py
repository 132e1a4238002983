"""Solution of exercise 5. In the package: `transept.model.layers.PostNorm`."""

from collections.abc import Callable

from torch import Tensor


def add_and_norm(
    x: Tensor, sublayer: Callable[[Tensor], Tensor], gain: Tensor, bias: Tensor
) -> Tensor:
    """Apply a sub-layer with its residual connection and layer normalization."""
    summed = x + sublayer(x)
    centred = summed - summed.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    return gain * centred / (variance + 1e-5).sqrt() + bias
