"""Dropout whose random bits are a hash: whether number i is kept follows from (seed, site, i).

So no mask is stored: the backward pass computes the bits of the forward pass again. The seed lies
on the device, so that a captured CUDA graph draws new bits at each replay, from a new seed.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from transept.shapes import Int, Tensor


class Drop(NamedTuple):
    """One of the network's dropouts: from these three the fate of each of its numbers follows."""

    p: float
    """The probability that a number is dropped."""
    seed: Int[Tensor, "2"]
    """Two numbers of 32 bits each, on the device. All dropouts share them."""
    site: int
    """The number of this dropout in the network: so each dropout has bits of its own."""


@triton.jit
def _mix(x):
    """The finaliser of MurmurHash3: every bit of x can change every bit of the result."""
    x = x ^ (x >> 16)
    x = x * 0x85EBCA6B
    x = x ^ (x >> 13)
    x = x * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def kept(seed, site, index, p):
    """Whether a dropout keeps each of these numbers.

    Args:
        seed: Pointer to two numbers of 32 bits.
        site: The number of the dropout in the network.
        index: The numbers' places among all that this dropout falls on.
        p: The probability that a number is dropped.
    """
    low = tl.load(seed).to(tl.uint32, bitcast=True)
    high = tl.load(seed + 1).to(tl.uint32, bitcast=True)
    key = _mix(low + site * 65521)
    bits = _mix(_mix(index.to(tl.uint32) ^ key) + high)
    # Only 24 bits are compared with p: a float holds these exactly.
    return (bits >> 8).to(tl.float32) >= p * 16777216.0
