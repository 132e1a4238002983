"""Exercise 7: positional encoding (section 3.5).

    PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

Attention does not know the order of its keys. Sinusoids are added to the embeddings to encode the
position. Even dimensions are sines, odd dimensions are cosines, and each pair has one wavelength,
from 2π to almost 10000 · 2π. Positions count from 0.

Hint: `torch.arange(0, d_model, 2)` already contains the numbers 2i. `torch.stack` and `flatten`
interleave two matrices, or assign to `encoding[:, 0::2]` and `encoding[:, 1::2]`.
"""

import torch
from torch import Tensor


def positional_encoding(n_positions: int, d_model: int) -> Tensor:
    """Return the encoding of the first positions, of shape [n_positions, d_model]."""
    raise NotImplementedError
