"""Operations between the matrix products, each in one pass, with gradients.

Dropout(embedding · √d_model + positional encoding), sections 3.4, 3.5 and 5.4;
LayerNorm(x + Dropout(y)), sections 3.1 and 5.4; the derivative of the ReLU, equation (2).

The random bits of dropout are a hash of (seed, site, index). So no mask is stored: the backward
pass recomputes the bits. The seed is stored on the device, so that each replay of a captured CUDA
graph can use a new seed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from transept.shapes import Float, Int, Tensor


class Drop(NamedTuple):
    """One dropout of the network. Its three fields determine which elements are dropped."""

    p: float
    """The probability that an element is dropped."""
    seed: Int[Tensor, "2"]
    """Two 32-bit numbers on the device, shared by all dropouts."""
    site: int
    """The number of this dropout in the network, so that each dropout has different bits."""


@triton.jit
def _mix(x):
    """The finalizer of MurmurHash3: every bit of x affects every bit of the result."""
    x = x ^ (x >> 16)
    x = x * 0x85EBCA6B
    x = x ^ (x >> 13)
    x = x * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def kept(seed, site, index, p):
    """Whether a dropout keeps each of these elements.

    Args:
        seed: Pointer to two 32-bit numbers.
        site: The number of the dropout in the network.
        index: The indices of the elements in the tensor.
        p: The probability that an element is dropped.
    """
    low = tl.load(seed).to(tl.uint32, bitcast=True)
    high = tl.load(seed + 1).to(tl.uint32, bitcast=True)
    key = _mix(low + site * 65521)
    bits = _mix(_mix(index.to(tl.uint32) ^ key) + high)
    # Compare only 24 bits with p: a float represents them exactly.
    return (bits >> 8).to(tl.float32) >= p * 16777216.0


def embed(
    ids: Int[Tensor, " N"],
    weight: Float[Tensor, "V D"],
    positions: Int[Tensor, " N"],
    table: Float[Tensor, "L D"],
    scale: float,
    pad_id: int,
    drop: Drop,
    dtype: torch.dtype,
) -> Float[Tensor, "N D"]:
    """The input of a stack. The embedding of padding counts as zero."""
    n, d = len(ids), weight.shape[1]
    out = torch.empty(n, d, dtype=dtype, device=weight.device)
    _embed_forward[(n,)](
        ids, weight, positions, table, out, scale, pad_id, drop.seed, drop.site, drop.p, d,
        D=triton.next_power_of_2(d), num_warps=2,
    )  # fmt: skip
    return out


def embed_backward(
    d_out: Float[Tensor, "N D"],
    ids: Int[Tensor, " N"],
    gradient: Float[Tensor, "V D"],
    scale: float,
    pad_id: int,
    drop: Drop,
) -> None:
    """Add the gradient of the embedding matrix to `gradient`.

    The gradients of a token that occurs several times are added in any order. If torch's
    deterministic algorithms are enabled, torch adds the rows in a fixed order.
    """
    n, d = d_out.shape
    ordered = torch.are_deterministic_algorithms_enabled()
    rows = torch.zeros(n, d, device=d_out.device) if ordered else gradient
    _embed_backward[(n,)](
        d_out, ids, rows, scale, pad_id, drop.seed, drop.site, drop.p, d,
        BY_TOKEN=not ordered, D=triton.next_power_of_2(d), num_warps=2,
    )  # fmt: skip
    if ordered:
        gradient.index_put_((ids.long(),), rows, accumulate=True)


@triton.jit
def _embed_forward(
    ids, weight, positions, table, out, scale, pad_id, seed, site, p, d, D: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, D)
    inside = columns < d
    token = tl.load(ids + row)
    scale = tl.where(token == pad_id, 0.0, scale)
    x = tl.load(weight + token.to(tl.int64) * d + columns, inside, 0.0).to(tl.float32) * scale
    position = tl.load(positions + row)
    x += tl.load(table + position.to(tl.int64) * d + columns, inside, 0.0).to(tl.float32)
    at = row * d + columns
    if p > 0:
        x = tl.where(kept(seed, site, at, p), x / (1 - p), 0.0)
    tl.store(out + at, x.to(out.dtype.element_ty), inside)


@triton.jit
def _embed_backward(
    d_out, ids, rows, scale, pad_id, seed, site, p, d, BY_TOKEN: tl.constexpr, D: tl.constexpr
):
    row = tl.program_id(0)
    token = tl.load(ids + row)
    if token != pad_id:
        columns = tl.arange(0, D)
        inside = columns < d
        at = row * d + columns
        g = tl.load(d_out + at, inside, 0.0).to(tl.float32) * scale
        if p > 0:
            g = tl.where(kept(seed, site, at, p), g / (1 - p), 0.0)
        if BY_TOKEN:
            tl.atomic_add(rows + token.to(tl.int64) * d + columns, g, inside, sem="relaxed")
        else:
            tl.store(rows + at, g, inside)


class Saved(NamedTuple):
    """Values saved for the backward pass."""

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
    """LayerNorm(x + Dropout(y)), with statistics in single precision."""
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

    With pre-norm, x + Dropout(y) is the residual stream, to which later sub-layers add: `d_summed`
    is its gradient from these.

    Sums over the tokens are added to `sums`: the gradients of the weight and bias of the layer
    normalization and, if there is a third, Σ ∂/∂y, the gradient of a bias added to y.
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


RELU_ROWS, RELU_COLUMNS, SPLITS = 64, 128, 64


def relu_backward(
    d_out: Float[Tensor, "N F"], out: Float[Tensor, "N F"], d_bias: Float[Tensor, " F"]
) -> None:
    """Set `d_out` to zero where `out` is zero, and add its sum over all rows to `d_bias`."""
    n, f = out.shape
    splits = min(SPLITS, triton.cdiv(n, RELU_ROWS))
    partial = torch.empty(1, splits, f, dtype=torch.float32, device=out.device)
    _relu_backward[(triton.cdiv(f, RELU_COLUMNS), splits)](
        d_out, out, partial, n, f, ROWS=RELU_ROWS, COLUMNS=RELU_COLUMNS, num_warps=4
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


SUM_COLUMNS, PARTS = 16, 256


def add_sums(partial: Float[Tensor, "sums parts D"], into: Sequence[Float[Tensor, " D"]]) -> None:
    """Add the sum of the parts of `partial[i]` to `into[i]`; at most three tensors.

    Each part is the sum over some tokens. The order of the additions is fixed, so that the same
    batch gives the same gradients.
    """
    _, parts, d = partial.shape
    first, second, third = (into[i] if i < len(into) else into[0] for i in range(3))
    _add_sums[(triton.cdiv(d, SUM_COLUMNS), len(into))](
        partial, first, second, third, parts, d, COLUMNS=SUM_COLUMNS, PARTS=PARTS, num_warps=8
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
