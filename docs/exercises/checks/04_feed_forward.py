"""Check of exercise 4."""

import torch
from comparing import close, must, shaped

from transept.model.layers import FeedForward


@torch.no_grad()
def check(student):
    """Compare with the package's module and its random weights."""
    torch.manual_seed(1)
    package = FeedForward(6, 24, activation="relu", dropout=0.0)
    w_1, b_1 = package.w_1.weight.T, package.w_1.bias
    w_2, b_2 = package.w_2.weight.T, package.w_2.bias
    x = 3 * torch.randn(2, 5, 6)
    found = student.feed_forward(x, w_1, b_1, w_2, b_2)
    shaped(found, (2, 5, 6), "the result for x of shape (2, 5, 6)")
    linear = (x @ w_1 + b_1) @ w_2 + b_2
    must(not torch.allclose(found, linear, atol=1e-5), "the ReLU between the matrices is missing")
    must(found.min() < 0, "no result is negative: the ReLU belongs before W_2, not after it")
    zero = student.feed_forward(torch.zeros(1, 6), w_1, torch.zeros(24), w_2, b_2)[0]
    close(zero, b_2, "for x = 0 and b_1 = 0 the result must be b_2; it")
    close(found, package(x.flatten(0, 1)).view(2, 5, 6), "the result")
