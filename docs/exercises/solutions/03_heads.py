"""Solution of exercise 3. In the package: `MultiHeadAttention` in `transept.model.attention`."""

from torch import Tensor


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Turn [B, L, h · d_k] into [B, h, L, d_k]."""
    return x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """Turn [B, h, L, d_v] into [B, L, h · d_v]."""
    return heads.transpose(1, 2).flatten(2)
