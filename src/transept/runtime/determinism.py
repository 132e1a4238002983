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
    """Within it, a GPU adds in one order if `sums` is `ordered`.

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
    # No code here reads memory that it has not written, so torch need not fill it.
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = fill
