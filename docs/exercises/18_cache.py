"""Exercise 18: cached self-attention for decoding.

In training, masked self-attention computes all positions at once. In inference, tokens come one at
a time. The keys and values of earlier tokens do not change, because no position sees a later one.
So they are cached: each step projects only the new token and appends its key and its value. The
outputs are the same as those of masked self-attention over the whole sequence.

Hint: the new token attends to itself, too. The cache is empty at the start, and `torch.cat` joins
tensors along an axis.
"""

import math

import torch
from torch import Tensor


class CachedAttention:
    """Masked self-attention with one head, one token at a time."""

    def __init__(self, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> None:
        """Prepare an empty cache.

        Args:
            w_q: The projection to queries, of shape [d_model, d_k].
            w_k: The projection to keys, of shape [d_model, d_k].
            w_v: The projection to values, of shape [d_model, d_v].
        """
        raise NotImplementedError

    def step(self, x: Tensor) -> Tensor:
        """Append a token and return its output.

        Args:
            x: The vector of the new token, of shape [1, d_model].

        Returns:
            The result of attention for this token, of shape [1, d_v].
        """
        raise NotImplementedError
