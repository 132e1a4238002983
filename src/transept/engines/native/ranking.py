"""The few likeliest tokens of a large vocabulary, in little more than one look at it."""

from functools import lru_cache

import torch

from transept.shapes import Float, Int, Tensor

WORTH_IT = 2**16
"""From so many numbers on, time goes by the numbers; below, by the operations of torch."""


def likeliest(
    logits: Float[Tensor, "N V"], k: int, nats: float
) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """Log p of the k likeliest tokens of each row, or of all of fewer, and which they are.

    Args:
        logits: Used up.
        k: How many.
        nats: What a unit of the logits is worth.
    """
    if logits.numel() < WORTH_IT:
        return logits.mul_(nats).log_softmax(dim=1).topk(min(k, logits.shape[1]), dim=1)
    top, token = largest(logits, k)
    return (top - log_sum_(logits, top[:, :1], nats)).mul_(nats), token


def largest(x: Float[Tensor, "N V"], k: int) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """`x.topk(k)`: the k largest numbers of each row, or all of fewer, and their places.

    They lie in the k blocks that have the largest maxima. Finding those takes a pass that only
    compares, which topk over a whole row is four times as long about.
    """
    n_rows, vocab_size = x.shape
    k, block = min(k, vocab_size), block_size(vocab_size)
    n_blocks = vocab_size // block
    if k >= n_blocks:
        return x.topk(k, dim=1)
    chosen = x.view(n_rows, n_blocks, block).amax(dim=2).topk(k, dim=1, sorted=False).indices
    first = torch.arange(0, n_rows * n_blocks, n_blocks, device=x.device)
    candidates = x.view(-1, block).index_select(0, (chosen + first[:, None]).flatten())
    values, place = candidates.view(n_rows, k * block).topk(k, dim=1)
    if k == 1:
        return values, torch.add(place, chosen, alpha=block)
    block_of = chosen.gather(1, place // block)
    return values, torch.add(place % block, block_of, alpha=block)


@lru_cache
def block_size(vocab_size: int) -> int:
    """The divisor of `vocab_size` nearest to 64; all of it, and so no blocks, if there is none."""
    divisors = (size for size in range(32, 257) if vocab_size % size == 0)
    return min(divisors, key=lambda size: abs(size - 64), default=vocab_size)


def log_sum_(
    x: Float[Tensor, "N V"], maximum: Float[Tensor, "N 1"], nats: float
) -> Float[Tensor, "N 1"]:
    """The logarithm of the sum of each row's powers, given its largest number. `x` is used up.

    Natural powers and logarithm if a unit is one nat; of two, if it is log 2.
    """
    x.sub_(maximum)
    if nats == 1.0:
        return x.exp_().sum(dim=1, keepdim=True).log_().add_(maximum)
    return x.exp2_().sum(dim=1, keepdim=True).log2_().add_(maximum)
