"""Random bits by counting: number i of a draw is a hash of (seed, site, i), stored nowhere.

The backward pass draws the forward pass's bits again. The seed lies on the device, so that a
captured graph draws anew each time it is replayed.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from transept.shapes import Int, Tensor


class Drop(NamedTuple):
    """One dropout of the network."""

    p: float
    seed: Int[Tensor, "2"]
    """On the device, 32 bits each."""
    site: int
    """Which dropout this is: each draws bits of its own."""


@triton.jit
def _mix(x):
    """The finaliser of MurmurHash3: every bit of x decides about every bit of the result."""
    x = x ^ (x >> 16)
    x = x * 0x85EBCA6B
    x = x ^ (x >> 13)
    x = x * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def kept(seed, site, index, p):
    """Whether each number of a dropout with probability `p` is kept.

    Args:
        seed: Pointer to two numbers of 32 bits.
        site: Which dropout of the network this is.
        index: Which number of it.
        p: Probability that a number is dropped.
    """
    low = tl.load(seed).to(tl.uint32, bitcast=True)
    high = tl.load(seed + 1).to(tl.uint32, bitcast=True)
    key = _mix(low + site * 65521)
    bits = _mix(_mix(index.to(tl.uint32) ^ key) + high)
    # 24 bits become a float exactly.
    return (bits >> 8).to(tl.float32) >= p * 16777216.0
