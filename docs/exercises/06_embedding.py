"""Exercise 6: one embedding matrix for three purposes (section 3.4).

The embedding of a source token, the embedding of a target token and the projection before the
softmax share one matrix, with a row per entry of the vocabulary. Embeddings are multiplied by
√d_model. The projection uses the matrix as it is: the logit of an entry is the dot product of the
decoder's output with the row of that entry.

Hint: indexing a matrix with a tensor of ids returns the rows of these ids.
"""

import math

from torch import Tensor


def embed(ids: Tensor, matrix: Tensor) -> Tensor:
    """Return the embeddings of tokens.

    Args:
        ids: Token ids, of shape [N].
        matrix: The embedding matrix, of shape [V, d_model].
    """
    raise NotImplementedError


def logits(states: Tensor, matrix: Tensor) -> Tensor:
    """Return the logits of all entries of the vocabulary.

    Args:
        states: The decoder's output, of shape [N, d_model].
        matrix: The same embedding matrix.
    """
    raise NotImplementedError
