"""Exercise 12: label smoothing, and the lowest loss that it allows (section 5.4).

Without smoothing, the loss of a token is −log p(right token). Label smoothing replaces the right
answer by a distribution: a fraction ε of the probability is spread evenly over all V entries of the
vocabulary, the right one included. The loss is the cross-entropy with it: −Σ_v target_v · log p_v.

Padding is not a token. It has no share of ε and does not count in V, its logit is left out of the
softmax, and positions whose target is padding contribute nothing. The loss is a sum over tokens.

Smoothing has a price: the loss cannot become zero any more. Cross-entropy is smallest if the
network predicts exactly the target distribution.

Hint: set the logit of padding to −∞ before `log_softmax`. Then 0 · −∞ is NaN, so leave that column
out of the sum. `lowest_loss` is the entropy of the target distribution.
"""

import math

import torch
from torch import Tensor


def smoothed_loss(logits: Tensor, target_ids: Tensor, epsilon: float, pad_id: int) -> Tensor:
    """Return the loss with label smoothing, summed over the tokens that are not padding.

    Args:
        logits: Of shape [N, V + 1]: the V entries of the vocabulary, and padding.
        target_ids: The right ids, of shape [N].
        epsilon: ε, the fraction of probability that is spread.
        pad_id: The id of padding.
    """
    raise NotImplementedError


def lowest_loss(n_entries: int, epsilon: float) -> float:
    """Return the smallest loss per token that any network can reach, for a vocabulary of V entries.

    Args:
        n_entries: V, without padding.
        epsilon: ε. It is more than 0.
    """
    raise NotImplementedError
