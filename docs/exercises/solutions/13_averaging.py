"""Solution of exercise 13. In the package: `transept.checkpoint.average`."""

import torch
from torch import Tensor


def average(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of each weight over all checkpoints."""
    names = checkpoints[0]
    return {name: torch.stack([one[name] for one in checkpoints]).mean(dim=0) for name in names}
