"""The derivative of max(0, x W + b): masked in place, the bias's gradient added up on the way."""

import torch
import triton
import triton.language as tl

from transept.engines.kernels.sums import add_sums
from transept.shapes import Float, Tensor

ROWS, COLUMNS = 64, 128
SPLITS = 64


def relu_backward(
    d_out: Float[Tensor, "N F"], out: Float[Tensor, "N F"], d_bias: Float[Tensor, " F"]
) -> None:
    """Set `d_out` to zero where `out` is; add what is left, over all rows, to `d_bias`."""
    n, f = out.shape
    splits = min(SPLITS, triton.cdiv(n, ROWS))
    partial = torch.empty(1, splits, f, dtype=torch.float32, device=out.device)
    _relu_backward[(triton.cdiv(f, COLUMNS), splits)](
        d_out, out, partial, n, f, ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4
    )
    add_sums(partial, [d_bias])


@triton.jit
def _relu_backward(d_out, out, partial, n, f, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    split, splits = tl.program_id(1), tl.num_programs(1)
    sums = tl.zeros([COLUMNS], tl.float32)
    for block in range(split, tl.cdiv(n, ROWS), splits):
        rows = block * ROWS + tl.arange(0, ROWS)
        inside = (rows < n)[:, None] & (columns < f)[None, :]
        at = rows[:, None].to(tl.int64) * f + columns[None, :]
        alive = tl.load(out + at, inside, 0.0) > 0
        g = tl.where(alive, tl.load(d_out + at, inside, 0.0), 0.0)
        tl.store(d_out + at, g, inside)
        sums += tl.sum(g.to(tl.float32), 0)
    tl.store(partial + split * f + columns, sums, columns < f)
