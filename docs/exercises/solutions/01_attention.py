"""Solution of exercise 1. In the package: `transept.model.attention.reference_attention`."""

import math

from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute equation (1)."""
    d_k = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_k)
    return scores.softmax(dim=-1) @ v
