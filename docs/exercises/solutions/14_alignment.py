"""Solution of exercise 14. In the package: `transept.api.attention.AttentionMap.joined`."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot


def word_weights(weights: Tensor, query_word: list[int], key_word: list[int]) -> Tensor:
    """Return the attention between words."""
    queries = one_hot(torch.tensor(query_word)).float()
    keys = one_hot(torch.tensor(key_word)).float()
    summed = queries.T @ weights @ keys
    return summed / queries.sum(dim=0)[:, None]


def align(weights: Tensor) -> list[int]:
    """Return the source word with the largest mean weight over all heads, per target word."""
    best: list[int] = weights.mean(dim=0).argmax(dim=-1).tolist()
    return best
