"""Exercise 2: masks (sections 3.1 and 3.2.3).

A mask says which positions may attend to which. It is boolean, and True means *may attend*.

- Encoder: sentences of a batch have different lengths, and the shorter ones are padded at the end.
  No position may attend to padding.
- Decoder: it is autoregressive. A position may attend to itself and to earlier positions, never to
  later ones. (Padding is later than every token of its sentence, so this mask hides it as well.)

The mask is applied to the scores before the softmax: forbidden scores become −∞, so their weights
are exactly zero and the others still sum to 1.

Hint: compare a column of positions with a row of positions. `torch.arange(n)[:, None]` is a column.
"""

import torch
from torch import Tensor


def encoder_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return which positions of each sentence may attend to which, of shape [B, L, L].

    Args:
        ids: Token ids of a padded batch, of shape [B, L].
        pad_id: The id of padding.

    Returns:
        The axes are sentence, query and key. The rows of queries that are padding are not checked,
        because their results are not used.
    """
    raise NotImplementedError


def decoder_mask(length: int) -> Tensor:
    """Return which positions may attend to which, of shape [length, length]: query and key."""
    raise NotImplementedError


def masked_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the attention weights: the softmax of the scores that the mask allows.

    Args:
        scores: Q Kᵀ / √d_k, of shape [B, T, S].
        mask: Of the same shape. Each query may attend to at least one key.
    """
    raise NotImplementedError
