"""Exercise 1: scaled dot-product attention (section 3.2.1, equation 1).

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V

Each query is compared with all keys by dot products. A softmax turns the scores of a query into
weights that sum to 1. The result for the query is the weighted mean of the values.

Hint: the last two axes are a matrix, all others are batches of matrices. `k.transpose(-2, -1)`
transposes each matrix of a batch, and `@` multiplies batch by batch.
"""

import math

import torch
from torch import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute equation (1).

    Args:
        q: The queries, of shape [..., T, d_k].
        k: The keys, of shape [..., S, d_k].
        v: The values, of shape [..., S, d_v].

    Returns:
        A vector per query, of shape [..., T, d_v].
    """
    raise NotImplementedError
