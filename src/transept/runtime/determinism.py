"""Sums in a fixed order: the same steps on the same GPU model give the same bits."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"

Sums = Literal["fast", "ordered"]
"""Whether a GPU may add in any order."""


@contextmanager
def order_of(sums: Sums) -> Iterator[None]:
    """Make GPUs add in a fixed order within the block, if `sums` is `ordered`.

    cuBLAS reads its environment variable on first use, so enter this block before that.
    """
    if sums == "fast":
        yield
        return
    os.environ.setdefault(WORKSPACE, ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic
    fill = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    # This package never reads uninitialized memory, so torch need not fill it.
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
