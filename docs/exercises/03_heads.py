"""Exercise 3: split into heads, and merge (section 3.2.2).

Multi-head attention projects each position to the queries of all heads with one matrix
multiplication. The output has h · d_k columns: the first d_k belong to the first head, the next
d_k to the second, and so on. Attention needs each head as a separate batch of positions. Its
results are concatenated again in the same order.

Hint: only `view` (or `reshape`) and `transpose` are needed. `view` never changes the order of the
numbers in memory, so it cannot exchange positions and heads.
"""

from torch import Tensor


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Turn [B, L, h · d_k] into [B, h, L, d_k]."""
    raise NotImplementedError


def merge_heads(heads: Tensor) -> Tensor:
    """Turn [B, h, L, d_v] into [B, L, h · d_v]: the inverse of `split_heads`."""
    raise NotImplementedError
