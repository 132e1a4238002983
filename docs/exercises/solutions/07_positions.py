"""Solution of exercise 7. In the package: `transept.model.positions.sinusoids`."""

import torch
from torch import Tensor


def positional_encoding(n_positions: int, d_model: int) -> Tensor:
    """Return the encoding of the first positions."""
    two_i = torch.arange(0, d_model, 2)
    angle = torch.arange(n_positions)[:, None] / 10_000 ** (two_i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
