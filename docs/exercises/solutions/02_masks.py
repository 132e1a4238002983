"""Solution of exercise 2. In the package: `transept.model.packing.visible`."""

import torch
from torch import Tensor


def encoder_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return which positions of each sentence may attend to which."""
    is_token = ids != pad_id
    return is_token[:, None, :].expand(-1, ids.shape[1], -1)


def decoder_mask(length: int) -> Tensor:
    """Return which positions may attend to which."""
    positions = torch.arange(length)
    return positions[None, :] <= positions[:, None]


def masked_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the attention weights."""
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
