"""Exercise 5: residual connection and layer normalization (section 3.1).

    LayerNorm(x + Sublayer(x))

Each sub-layer, attention or feed-forward, has a residual connection around it, followed by layer
normalization (post-norm). Layer normalization treats each vector by itself: it subtracts the mean
of its numbers and divides by their standard deviation. A learned gain and bias follow.

    LayerNorm(v) = gain · (v − mean) / √(variance + ε) + bias,    ε = 1e-5

The variance is the mean of the squared deviations: divide by d_model, not by d_model − 1.

Hint: write it with `mean`; do not use torch's layer norm. `keepdim=True` keeps the reduced axis, so
that the result can be subtracted from `x`.
"""

from collections.abc import Callable

from torch import Tensor


def add_and_norm(
    x: Tensor, sublayer: Callable[[Tensor], Tensor], gain: Tensor, bias: Tensor
) -> Tensor:
    """Apply a sub-layer with its residual connection and layer normalization.

    Args:
        x: Vectors, of shape [..., d_model].
        sublayer: A function that returns a tensor of the same shape.
        gain: Of shape [d_model].
        bias: Of shape [d_model].
    """
    raise NotImplementedError
