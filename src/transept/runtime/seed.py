"""Random numbers that follow from a key, not from how many were drawn before."""

import hashlib

import torch


def derive_seed(*key: int | str) -> int:
    """A seed of 63 bits that depends on every part of the key, and on nothing else."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def seed_torch(*key: int | str) -> None:
    """Set the generators of every device by a key.

    Dropout is keyed by (seed, step, micro-batch): a resumed run draws what the uninterrupted one
    would have drawn, with no generator state to save, and ranks may share out micro-batches as
    they like.
    """
    torch.manual_seed(derive_seed(*key))
