"""Sums in one order: the same steps on the same kind of GPU give the same bits."""

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
    """Within it, sums are made in one order, where that is asked for.

    cuBLAS reads its variable when it is first used, so this must come before that.
    """
    if sums == "fast":
        yield
        return
    os.environ.setdefault(WORKSPACE, ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    settings: Any = torch.utils.deterministic
    fill = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    # Nothing here reads what it has not written.
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
