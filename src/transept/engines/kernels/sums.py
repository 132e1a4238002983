"""Sums over tokens in two stages: each program its part, then all parts together.

The order of the additions is fixed, so that the same batch gives the same gradients.
"""

from collections.abc import Sequence

import triton
import triton.language as tl

from transept.shapes import Float, Tensor

COLUMNS, PARTS = 16, 256


def add_sums(partial: Float[Tensor, "sums parts D"], into: Sequence[Float[Tensor, " D"]]) -> None:
    """Add Σ of the parts of `partial[i]` to `into[i]`, of which there are at most three."""
    _, parts, d = partial.shape
    first, second, third = (into[i] if i < len(into) else into[0] for i in range(3))
    _add_sums[(triton.cdiv(d, COLUMNS), len(into))](
        partial, first, second, third, parts, d, COLUMNS=COLUMNS, PARTS=PARTS, num_warps=8
    )


@triton.jit
def _add_sums(partial, first, second, third, parts, d, COLUMNS: tl.constexpr, PARTS: tl.constexpr):
    which = tl.program_id(1)
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros([PARTS, COLUMNS], tl.float32)
    for start in range(0, parts, PARTS):
        rows = start + tl.arange(0, PARTS)
        inside = (rows < parts)[:, None] & (columns < d)[None, :]
        at = (which * parts + rows[:, None]) * d + columns[None, :]
        sums += tl.load(partial + at, inside, 0.0)
    into = first
    if which == 1:
        into = second
    elif which == 2:
        into = third
    total = tl.load(into + columns, columns < d, 0.0) + tl.sum(sums, 0)
    tl.store(into + columns, total, columns < d)
