"""Shuffling that is the same on every machine and under every version of numpy."""

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray


def digest(*key: Any) -> str:
    """The sha256 of anything that JSON can say."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()


def permutation(n: int, *key: Any) -> NDArray[np.int64]:
    """The numbers below n, in an order that follows from the key alone."""
    # Only a bit generator's raw numbers are promised never to change, `Generator.permutation` is
    # not. Each number carries its index in the low bits, so that no two are equal and every
    # sorting algorithm gives the same order.
    seed = np.random.SeedSequence(int(digest(*key), 16))
    bits = np.uint64(n.bit_length())
    numbers = np.random.PCG64(seed).random_raw(n) >> bits << bits
    numbers |= np.arange(n, dtype=np.uint64)
    numbers.sort()
    return (numbers & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
