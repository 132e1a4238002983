"""LayerNorm(x + Dropout(y)), section 3.1 and 5.4, in one pass each way."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from transept.engines.kernels.dropout import Drop, kept
from transept.engines.kernels.sums import add_sums
from transept.shapes import Float, Tensor


class Saved(NamedTuple):
    """What the backward pass needs."""

    summed: Float[Tensor, "N D"]
    mean: Float[Tensor, " N"]
    rstd: Float[Tensor, " N"]


def add_norm(
    x: Float[Tensor, "N D"],
    y: Float[Tensor, "N D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    epsilon: float,
    drop: Drop,
) -> tuple[Float[Tensor, "N D"], Saved]:
    """LayerNorm(x + Dropout(y)), statistics in single precision."""
    n, d = x.shape
    out, summed = torch.empty_like(x), torch.empty_like(x)
    mean, rstd = torch.empty(2, n, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(d)
    rows = 2
    _add_norm_forward[(triton.cdiv(n, rows),)](
        x, y, weight, bias, out, summed, mean, rstd, drop.seed, drop.site, drop.p, epsilon, n, d,
        ROWS=rows, D=block, num_warps=_warps(block),
    )  # fmt: skip
    return out, Saved(summed, mean, rstd)


def add_norm_backward(
    d_out: Float[Tensor, "N D"],
    saved: Saved,
    weight: Float[Tensor, " D"],
    drop: Drop,
    sums: Sequence[Float[Tensor, " D"]],
    d_summed: Float[Tensor, "N D"] | None = None,
) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N D"]]:
    """∂/∂x and ∂/∂y.

    With pre-norm, x + Dropout(y) is itself the stream that later sub-layers add to: `d_summed` is
    its gradient from these.

    What is summed over the tokens is added to `sums`: the gradients of the norm's weight and bias
    and, where there is a third, Σ ∂/∂y, the gradient of a bias that y ends in.
    """
    n, d = d_out.shape
    dx, dy = torch.empty_like(d_out), torch.empty_like(d_out)
    block = triton.next_power_of_2(d)
    rows = 2
    programs = min(triton.cdiv(n, rows), _processors(d_out.device) * 8)
    partial = torch.empty(3, programs, d, dtype=torch.float32, device=d_out.device)
    _add_norm_backward[(programs,)](
        d_out, saved.summed, saved.mean, saved.rstd, weight,
        d_out if d_summed is None else d_summed, dx, dy, partial,
        drop.seed, drop.site, drop.p, n, d,
        PRE=d_summed is not None, ROWS=rows, D=block, num_warps=_warps(block),
    )  # fmt: skip
    add_sums(partial, sums)
    return dx, dy


def _warps(width: int) -> int:
    return min(8, max(1, width // 256))


def _processors(device: torch.device) -> int:
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


@triton.jit
def _add_norm_forward(
    x, y, weight, bias, out, summed, mean, rstd, seed, site, p, epsilon, n, d,
    ROWS: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, D)
    inside = (rows < n)[:, None] & (columns < d)[None, :]
    at = rows[:, None] * d + columns[None, :]
    y_rows = tl.load(y + at, inside, 0.0).to(tl.float32)
    if p > 0:
        y_rows = tl.where(kept(seed, site, at, p), y_rows / (1 - p), 0.0)
    z = y_rows + tl.load(x + at, inside, 0.0).to(tl.float32)
    middle = tl.sum(z, 1) / d
    centred = tl.where(inside, z - middle[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 1) / d + epsilon)
    w = tl.load(weight + columns, columns < d, 0.0).to(tl.float32)
    b = tl.load(bias + columns, columns < d, 0.0).to(tl.float32)
    normed = centred * scale[:, None] * w[None, :] + b[None, :]
    tl.store(out + at, normed.to(out.dtype.element_ty), inside)
    tl.store(summed + at, z.to(summed.dtype.element_ty), inside)
    tl.store(mean + rows, middle, rows < n)
    tl.store(rstd + rows, scale, rows < n)


@triton.jit
def _add_norm_backward(
    d_out, summed, mean, rstd, weight, d_summed, dx, dy, partial, seed, site, p, n, d,
    PRE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    program, programs = tl.program_id(0), tl.num_programs(0)
    columns = tl.arange(0, D)
    w = tl.load(weight + columns, columns < d, 0.0).to(tl.float32)
    sum_w = tl.zeros([D], tl.float32)
    sum_b = tl.zeros([D], tl.float32)
    sum_y = tl.zeros([D], tl.float32)
    for block in range(program, tl.cdiv(n, ROWS), programs):
        rows = block * ROWS + tl.arange(0, ROWS)
        inside = (rows < n)[:, None] & (columns < d)[None, :]
        at = rows[:, None] * d + columns[None, :]
        g = tl.load(d_out + at, inside, 0.0).to(tl.float32)
        z = tl.load(summed + at, inside, 0.0).to(tl.float32)
        middle, scale = tl.load(mean + rows, rows < n, 0.0), tl.load(rstd + rows, rows < n, 0.0)
        normed = tl.where(inside, (z - middle[:, None]) * scale[:, None], 0.0)
        sum_w += tl.sum(g * normed, 0)
        sum_b += tl.sum(g, 0)
        g = g * w[None, :]
        along = tl.sum(g * normed, 1) / d
        dz = (g - tl.sum(g, 1)[:, None] / d - normed * along[:, None]) * scale[:, None]
        if PRE:
            dz += tl.load(d_summed + at, inside, 0.0).to(tl.float32)
        tl.store(dx + at, dz.to(dx.dtype.element_ty), inside)
        if p > 0:
            dz = tl.where(kept(seed, site, at, p), dz / (1 - p), 0.0)
        sum_y += tl.sum(tl.where(inside, dz, 0.0), 0)
        tl.store(dy + at, dz.to(dy.dtype.element_ty), inside)
    tl.store(partial + program * d + columns, sum_w, columns < d)
    tl.store(partial + (programs + program) * d + columns, sum_b, columns < d)
    tl.store(partial + (2 * programs + program) * d + columns, sum_y, columns < d)
