"""Exercise 4: the position-wise feed-forward network (section 3.3, equation 2).

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2

The same two matrices are applied to each position separately. Between them is a ReLU, max(0, ·).
In the paper's base model they widen a vector from 512 to 2048 numbers and narrow it again.

Hint: `@` multiplies the last axis of `x` with the first axis of a matrix, and leaves all other
axes of `x` as they are.
"""

from torch import Tensor


def feed_forward(x: Tensor, w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor) -> Tensor:
    """Compute equation (2).

    Args:
        x: Vectors of any number of positions, of shape [..., d_model].
        w_1: Of shape [d_model, d_ff].
        b_1: Of shape [d_ff].
        w_2: Of shape [d_ff, d_model].
        b_2: Of shape [d_model].
    """
    raise NotImplementedError
