"""Solution of exercise 4. In the package: `transept.model.layers.FeedForward`."""

from torch import Tensor


def feed_forward(x: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    """Compute equation (2)."""
    inner = (x @ w_1 + b_1).relu()
    return inner @ w_2 + b_2
