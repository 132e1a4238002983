"""Exercise 13: checkpoint averaging (section 6.1).

The paper translates with the mean of the last checkpoints: 5 for its base models, 20 for the big
ones. Each weight of the averaged model is the mean of that weight in all checkpoints.

Hint: do not change the checkpoints. `a += b` changes `a` itself, `a = a + b` does not.
"""

import torch
from torch import Tensor


def average(checkpoints: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of each weight over all checkpoints.

    Args:
        checkpoints: The weights of each checkpoint by name. All have the same names.
    """
    raise NotImplementedError
