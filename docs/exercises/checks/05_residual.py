"""Check of exercise 5."""

import torch
from comparing import close, must, shaped

from transept.model.layers import PostNorm


@torch.no_grad()
def check(student):
    """First the normalization without gain and bias, then all of it against the package."""
    torch.manual_seed(1)
    x, ones, zeros = 2 + 3 * torch.randn(2, 5, 8), torch.ones(8), torch.zeros(8)
    received = []

    def sublayer(given):
        received.append(given.clone())
        return given.tanh()

    plain = student.add_and_norm(x, sublayer, ones, zeros)
    shaped(plain, (2, 5, 8), "the result for x of shape (2, 5, 8)")
    must(received, "the sub-layer is never called")
    must(
        torch.equal(received[0], x),
        "the sub-layer does not receive x: in the paper, normalization comes after the sum",
    )
    mean, deviation = plain.mean(-1), plain.std(-1, correction=0)
    must(
        mean.abs().max() < 1e-4,
        f"the mean of a vector is {mean[0, 0]:.3f}, not 0: normalize each vector by itself",
    )
    must(
        (deviation - 1).abs().max() < 1e-3,
        f"the standard deviation of a vector is {deviation[0, 0]:.3f}, not 1 (d_model = 8): "
        "is the variance the mean over d_model numbers, and is its root taken?",
    )
    alone = student.add_and_norm(x, torch.zeros_like, ones, zeros)
    hint = ": where is the residual connection?"
    close(alone, torch.layer_norm(x, (8,)), "with a sub-layer that returns 0 the result", hint)
    package = PostNorm(8, dropout=0.0)
    torch.nn.init.normal_(package.norm.weight)
    torch.nn.init.normal_(package.norm.bias)
    found = student.add_and_norm(x[0], torch.sin, package.norm.weight, package.norm.bias)
    close(found, package(x[0], torch.sin), "the result", ": are gain and bias used?")
    equal = student.add_and_norm(torch.ones(1, 8), torch.sin, ones, zeros)
    must(not equal.isnan().any(), "a vector of equal numbers gives NaN: add ε under the root")
    small = torch.randn(1, 8) / 1000
    close(
        student.add_and_norm(small, torch.sin, ones, zeros),
        torch.layer_norm(small + small.sin(), (8,)),
        "for a vector of tiny numbers the result",
        ": ε = 1e-5 is added to the variance, under the root",
    )
