"""Exercise 14: from attention weights to an alignment of words (appendix, Figures 3 to 5).

Encoder-decoder attention has a weight for each head, each target subword (query) and each source
subword (key). A picture between words needs one weight per pair of words.

- Attention *to* a word is the sum over its subwords: what its parts receive, the word receives.
- Attention *from* a word is the mean over its subwords, so that its weights still sum to 1.

The word to which a target word attends most, on average over all heads, is its alignment.

Hint: a matrix with a one where subword i belongs to word j sums over the subwords of each word in
one product. `torch.nn.functional.one_hot(torch.tensor(word_of))` is this matrix, in integers.
"""

import torch
from torch import Tensor


def word_weights(weights: Tensor, query_word: list[int], key_word: list[int]) -> Tensor:
    """Return the attention between words, of shape [H, target words, source words].

    Args:
        weights: Attention between subwords, of shape [H, T, S].
        query_word: The index of the word to which each target subword belongs.
        key_word: The same for each source subword.
    """
    raise NotImplementedError


def align(weights: Tensor) -> list[int]:
    """Return the source word with the largest mean weight over all heads, per target word.

    Args:
        weights: Attention between words, of shape [H, target words, source words].
    """
    raise NotImplementedError
