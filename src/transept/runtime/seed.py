"""Random numbers that depend on a key, not on how many were generated before."""

import hashlib

import torch


def derive_seed(*key: int | str) -> int:
    """Return a 63-bit seed that depends on every part of the key and nothing else."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seed_torch(*key: int | str) -> None:
    """Seed the generators of every device from a key.

    Dropout is keyed by (seed, step, micro-batch). A resumed run therefore samples the same masks
    as an uninterrupted one without saving generator state, and micro-batches may be distributed
    among ranks in any way.
    """
    torch.manual_seed(derive_seed(*key))
