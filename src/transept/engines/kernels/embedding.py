"""Dropout(embedding · √d_model + position), sections 3.4, 3.5 and 5.4, and its gradient."""

import torch
import triton
import triton.language as tl

from transept.engines.kernels.dropout import Drop, kept
from transept.shapes import Float, Int, Tensor


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
    """The vectors that enter a stack; a padding token's own vector counts as zero."""
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
    """Add the gradient of the embedding matrix to `gradient`, row by row of the tokens.

    Of tokens that occur twice, whichever comes first is added first. Where torch is to be
    deterministic, the rows are written down and torch adds them, in one order.
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
    place = tl.load(positions + row)
    x += tl.load(table + place.to(tl.int64) * d + columns, inside, 0.0).to(tl.float32)
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
