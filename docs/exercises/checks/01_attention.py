"""Check of exercise 1."""

import torch
from comparing import close, must, shaped

from transept.model.attention import reference_attention


def check(student):
    """With the identity matrix as values, the result is the matrix of weights."""
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 5, 16), torch.randn(2, 3, 7, 16), torch.randn(2, 3, 7, 4)
    weights = student.attention(q, k, torch.eye(7).expand(2, 3, 7, 7))
    shaped(weights, (2, 3, 5, 7), "the result for 5 queries and 7 keys with values of 7 numbers")
    sums = weights.sum(-1)
    must(
        torch.allclose(sums, torch.ones_like(sums), atol=1e-4),
        f"the weights of a query sum to {sums[0, 0, 0]:.2f}, not 1: softmax over which axis?",
    )
    # log weights differ by the same factor as the scores: by what were these multiplied?
    scores, logs = q @ k.transpose(-2, -1), weights.log()
    factor = (logs[..., 1:] - logs[..., :1]).norm() / (scores[..., 1:] - scores[..., :1]).norm()
    must(
        abs(factor - 0.25) < 1e-3,
        f"with d_k = 16, the scores are multiplied by {factor:.4f} before the softmax, "
        "not by 1/√d_k = 0.25",
    )
    everything = torch.ones(2, 5, 7, dtype=torch.bool)
    close(student.attention(q, k, v), reference_attention(q, k, v, everything), "the result")
