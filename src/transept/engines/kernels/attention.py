"""Equation (1) on tiles: sentences are packed in tiles of tokens, and each sees only itself.

One program computes one head of one tile. The queries of a tile see the keys of a span of tiles.
The span is the tile itself, except for sentences longer than a tile. Scores never leave the chip:
the backward pass recomputes them, with the same dropout.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from transept.engines.kernels import LONGEST
from transept.engines.kernels.pointwise import Drop, kept
from transept.shapes import Float, Int, Tensor

LOG2_E = tl.constexpr(1.4426950408889634)
"""exp(x) is computed as 2^(x · log₂ e), because a GPU has an instruction for powers of two."""


@dataclass(frozen=True, slots=True)
class TokenSide:
    """Sentence and position of each token, of queries or keys."""

    segments: Int[Tensor, " N"]
    """The number of each token's sentence; 0 is padding."""
    positions: Int[Tensor, " N"]
    """Its position in the sentence."""


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Which keys the queries see: those of the same sentence, within a band of distances."""

    queries: TokenSide
    keys: TokenSide
    spans: Int[Tensor, "tiles 2"]
    """For each tile, the range of tiles that it sees: first, and last plus one. Symmetric."""
    tile: int
    before: int | None = None
    after: int | None = None


def spans(
    sides: tuple[Int[Tensor, " N"], ...], tile: int, row_tiles: int
) -> Int[Tensor, "tiles 2"]:
    """The span of each tile, from the segments of both sides.

    A row is `row_tiles` tiles, and a sentence stays within its row. If a sentence spans two tiles,
    in source or target, all tiles of its row see each other.
    """
    n_tiles = len(sides[0]) // tile
    each = torch.arange(n_tiles, device=sides[0].device, dtype=torch.int32)
    alone = torch.stack([each, each + 1], dim=1)
    if row_tiles == 1:
        return alone
    crossing = torch.zeros(n_tiles // row_tiles, dtype=torch.bool, device=each.device)
    for segments in sides:
        rows = segments.view(-1, row_tiles, tile)
        last, first = rows[:, :-1, -1], rows[:, 1:, 0]
        crossing = crossing | ((last == first) & (last > 0)).any(1)
    start = each // row_tiles * row_tiles
    row = torch.stack([start, start + row_tiles], dim=1)
    return torch.where(crossing.repeat_interleave(row_tiles)[:, None], row, alone)


def attend(
    q: Float[Tensor, "N HDk"],
    k: Float[Tensor, "N HDk"],
    v: Float[Tensor, "N HDv"],
    spec: AttentionSpec,
    n_heads: int,
    drop: Drop,
) -> tuple[Float[Tensor, "N HDv"], Float[Tensor, "H N"]]:
    """The concatenated heads, and log₂ Σ exp of each query's scores, for the backward pass."""
    d_k, d_v = q.shape[1] // n_heads, v.shape[1] // n_heads
    out = torch.empty(len(q), n_heads * d_v, dtype=q.dtype, device=q.device)
    log_total = torch.empty(n_heads, len(q), dtype=torch.float32, device=q.device)
    block = min(64, spec.tile)
    _attend_forward[(len(q) // block, n_heads)](
        q, k, v, out, log_total,
        *_tensors(spec),
        q.stride(0), k.stride(0), v.stride(0), out.stride(0), len(q),
        d_k**-0.5, drop.seed, drop.site, drop.p,
        **_constants(spec, drop, d_k, d_v), BLOCK=block,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return out, log_total


def attend_backward(
    q: Float[Tensor, "N HDk"],
    k: Float[Tensor, "N HDk"],
    v: Float[Tensor, "N HDv"],
    out: Float[Tensor, "N HDv"],
    log_total: Float[Tensor, "H N"],
    d_out: Float[Tensor, "N HDv"],
    spec: AttentionSpec,
    drop: Drop,
    gradients: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Write ∂/∂q, ∂/∂k and ∂/∂v into `gradients`, which have the shapes of q, k and v."""
    n_heads = len(log_total)
    d_k, d_v = q.shape[1] // n_heads, v.shape[1] // n_heads
    dq, dk, dv = gradients
    _attend_backward[(len(q) // spec.tile, n_heads)](
        q, k, v, out, log_total, d_out, dq, dk, dv,
        *_tensors(spec),
        q.stride(0), k.stride(0), v.stride(0), out.stride(0), d_out.stride(0),
        dq.stride(0), dk.stride(0), dv.stride(0), len(q),
        d_k**-0.5, drop.seed, drop.site, drop.p,
        **_constants(spec, drop, d_k, d_v), BLOCK=min(32, spec.tile),
        num_warps=4, num_stages=2,
    )  # fmt: skip


def _tensors(spec: AttentionSpec) -> tuple[Tensor, ...]:
    queries, keys = spec.queries, spec.keys
    return queries.segments, queries.positions, keys.segments, keys.positions, spec.spans


def _constants(spec: AttentionSpec, drop: Drop, d_k: int, d_v: int) -> dict[str, int]:
    return {
        "BEFORE": LONGEST if spec.before is None else spec.before,
        "AFTER": LONGEST if spec.after is None else spec.after,
        "LONGEST": LONGEST,
        "IS_SELF": spec.queries is spec.keys,
        "TILE": spec.tile,
        "DK": d_k,
        "DV": d_v,
        "DROPS": drop.p > 0,
    }


@triton.jit
def _rows(pointer, stride, start, head, ROWS: tl.constexpr, D: tl.constexpr):
    """The vectors of one head at these rows."""
    return tl.load(_at(pointer, stride, start, head, ROWS, D))


@triton.jit
def _store_rows(pointer, stride, start, head, values, ROWS: tl.constexpr, D: tl.constexpr):
    tl.store(_at(pointer, stride, start, head, ROWS, D), values.to(pointer.dtype.element_ty))


@triton.jit
def _at(pointer, stride, start, head, ROWS: tl.constexpr, D: tl.constexpr):
    # A 64-bit offset for the block; within it, 32-bit offsets save many registers.
    pointer += start * stride.to(tl.int64) + head * D
    return pointer + tl.arange(0, ROWS)[:, None] * stride + tl.arange(0, D)[None, :]


@triton.jit
def _codes(segments, positions, rows, LONGEST: tl.constexpr):
    """One number per token, ordered by sentence and position."""
    segment, position = tl.load(segments + rows), tl.load(positions + rows)
    return segment.to(tl.int32) * LONGEST + position.to(tl.int32)


@triton.jit
def _bounds(
    segments, positions, rows,
    BEFORE: tl.constexpr, AFTER: tl.constexpr, LONGEST: tl.constexpr,
):  # fmt: skip
    """The first and the last code that each query sees."""
    start = tl.load(segments + rows).to(tl.int32) * LONGEST
    position = tl.load(positions + rows).to(tl.int32)
    first = start + tl.maximum(position - BEFORE, 0)
    return first, start + tl.minimum(position + AFTER, LONGEST - 1)


@triton.jit
def _near(start, stop, first, last, SIZE: tl.constexpr, IS_SELF: tl.constexpr):
    """The blocks of `SIZE` tokens that contain tokens `first` to `last`, from start to stop.

    In self-attention, only these can be seen. So restricted attention costs r · n · d (section 4),
    and causal attention half of n² · d.
    """
    if IS_SELF:
        start = tl.maximum(start, tl.maximum(first, 0) // SIZE)
        stop = tl.minimum(stop, last // SIZE + 1)
    return start, stop


@triton.jit
def _kept_weights(seed, site, head, row, code, p, LONGEST: tl.constexpr):
    """Which weights dropout keeps: one random number per head, query and position.

    So the result does not depend on the blocks and the order in which the weights are computed.
    """
    # The dropout after the attention uses the site itself; the heads use numbers above it.
    index = row * LONGEST + (code & (LONGEST - 1))
    return kept(seed, (site + (head + 1) * 65536).to(tl.uint32), index, p)


@triton.jit(do_not_specialize=["site"])
def _attend_forward(
    q, k, v, out, log_total,
    q_segments, q_positions, k_segments, k_positions, spans,
    q_stride, k_stride, v_stride, out_stride, n,
    scale, seed, site, drop_p,
    BEFORE: tl.constexpr, AFTER: tl.constexpr, LONGEST: tl.constexpr, TILE: tl.constexpr,
    DK: tl.constexpr, DV: tl.constexpr, DROPS: tl.constexpr, BLOCK: tl.constexpr,
    IS_SELF: tl.constexpr,
):  # fmt: skip
    """A block of queries, and the blocks of keys that they see."""
    block, head = tl.program_id(0), tl.program_id(1)
    BLOCKS: tl.constexpr = TILE // BLOCK
    tile = block // BLOCKS
    rows = block * BLOCK + tl.arange(0, BLOCK)
    q_rows = _rows(q, q_stride, block * BLOCK, head, BLOCK, DK)
    first, last = _bounds(q_segments, q_positions, rows, BEFORE, AFTER, LONGEST)
    highest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    sums = tl.zeros([BLOCK, DV], tl.float32)
    start, stop = tl.load(spans + 2 * tile) * BLOCKS, tl.load(spans + 2 * tile + 1) * BLOCKS
    begin, end = block * BLOCK, block * BLOCK + BLOCK - 1
    start, stop = _near(start, stop, begin - BEFORE, end + AFTER, BLOCK, IS_SELF)
    for key_block in range(start, stop):
        keys = key_block * BLOCK + tl.arange(0, BLOCK)
        k_tile = _rows(k, k_stride, key_block * BLOCK, head, BLOCK, DK)
        v_tile = _rows(v, v_stride, key_block * BLOCK, head, BLOCK, DV)
        scores = tl.dot(q_rows, tl.trans(k_tile), input_precision="ieee") * (scale * LOG2_E)
        code = _codes(k_segments, k_positions, keys, LONGEST)
        legal = (code[None, :] >= first[:, None]) & (code[None, :] <= last[:, None])
        scores = tl.where(legal, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        # A query that sees nothing (padding) has no highest score: use 0, so that p is 0.
        base = tl.where(new_highest == float("-inf"), 0.0, new_highest)
        p = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(highest - base)
        total = total * shrink + tl.sum(p, 1)
        if DROPS:
            keep = _kept_weights(seed, site, head, rows[:, None], code[None, :], drop_p, LONGEST)
            p = tl.where(keep, p, 0.0)
        sums = sums * shrink[:, None] + tl.dot(p.to(v_tile.dtype), v_tile, input_precision="ieee")
        highest = new_highest
    total = tl.where(total == 0.0, 1.0, total)
    highest = tl.where(highest == float("-inf"), 0.0, highest)
    if DROPS:
        sums = sums / (1 - drop_p)
    _store_rows(out, out_stride, block * BLOCK, head, sums / total[:, None], BLOCK, DV)
    tl.store(log_total + head * n + rows, highest + tl.log2(total))


@triton.jit
def _p_and_ds(
    q, k, v, do, log_total, mean, rows, first, last, code, scale, head, seed, site, drop_p,
    LONGEST: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """The recomputed weights after dropout, and the gradient of the scaled scores; a row per key.

    In this order, both can be multiplied by rows of queries without a transposition.
    """
    scores = tl.dot(k, tl.trans(q), input_precision="ieee")
    p = tl.exp2(scores * (scale * LOG2_E) - log_total[None, :])
    legal = (code[:, None] >= first[None, :]) & (code[:, None] <= last[None, :])
    p = tl.where(legal, p, 0.0)
    dp = tl.dot(v, tl.trans(do), input_precision="ieee")
    dropped = p
    if DROPS:
        keep = _kept_weights(seed, site, head, rows[None, :], code[:, None], drop_p, LONGEST)
        factor = tl.where(keep, 1 / (1 - drop_p), 0.0)
        dropped, dp = p * factor, dp * factor
    # The mean of dp under p, Σ_j p_ij dp_ij, equals out_i · d_out_i, also with dropout.
    return dropped.to(q.dtype), (p * (dp - mean[None, :])).to(q.dtype)


@triton.jit(do_not_specialize=["site"])
def _attend_backward(
    q, k, v, out, log_total, d_out, dq, dk, dv,
    q_segments, q_positions, k_segments, k_positions, spans,
    q_stride, k_stride, v_stride, out_stride, d_out_stride, dq_stride, dk_stride, dv_stride, n,
    scale, seed, site, drop_p,
    BEFORE: tl.constexpr, AFTER: tl.constexpr, LONGEST: tl.constexpr, TILE: tl.constexpr,
    DK: tl.constexpr, DV: tl.constexpr, DROPS: tl.constexpr, BLOCK: tl.constexpr,
    IS_SELF: tl.constexpr,
):  # fmt: skip
    """Gradients of the keys and values of a tile, and of its queries, in blocks."""
    tile, head = tl.program_id(0), tl.program_id(1)
    start, stop = tl.load(spans + 2 * tile), tl.load(spans + 2 * tile + 1)
    alone = stop - start == 1
    log_total += head * n
    k_tile = _rows(k, k_stride, tile * TILE, head, TILE, DK)
    v_tile = _rows(v, v_stride, tile * TILE, head, TILE, DV)
    code = _codes(k_segments, k_positions, tile * TILE + tl.arange(0, TILE), LONGEST)
    dk_tile = tl.zeros([TILE, DK], tl.float32)
    dv_tile = tl.zeros([TILE, DV], tl.float32)
    BLOCKS: tl.constexpr = TILE // BLOCK
    begin, end = tile * TILE - AFTER, tile * TILE + TILE - 1 + BEFORE
    some, others = _near(start * BLOCKS, stop * BLOCKS, begin, end, BLOCK, IS_SELF)
    for block in range(some, others):
        rows = block * BLOCK + tl.arange(0, BLOCK)
        q_rows = _rows(q, q_stride, block * BLOCK, head, BLOCK, DK)
        o_rows = _rows(out, out_stride, block * BLOCK, head, BLOCK, DV)
        do_rows = _rows(d_out, d_out_stride, block * BLOCK, head, BLOCK, DV)
        first, last = _bounds(q_segments, q_positions, rows, BEFORE, AFTER, LONGEST)
        mean = tl.sum(o_rows.to(tl.float32) * do_rows.to(tl.float32), 1)
        p, ds = _p_and_ds(
            q_rows, k_tile, v_tile, do_rows, tl.load(log_total + rows), mean,
            rows, first, last, code, scale, head, seed, site, drop_p, LONGEST, DROPS,
        )  # fmt: skip
        dv_tile += tl.dot(p, do_rows, input_precision="ieee")
        dk_tile += tl.dot(ds, q_rows, input_precision="ieee")
        if alone:
            dq_rows = tl.dot(tl.trans(ds), k_tile, input_precision="ieee") * scale
            _store_rows(dq, dq_stride, block * BLOCK, head, dq_rows, BLOCK, DK)
    _store_rows(dk, dk_stride, tile * TILE, head, dk_tile * scale, TILE, DK)
    _store_rows(dv, dv_stride, tile * TILE, head, dv_tile, TILE, DV)
    if not alone:
        # The queries of this tile see keys in several tiles: sum over these.
        for block in range(tile * BLOCKS, (tile + 1) * BLOCKS):
            rows = block * BLOCK + tl.arange(0, BLOCK)
            q_rows = _rows(q, q_stride, block * BLOCK, head, BLOCK, DK)
            o_rows = _rows(out, out_stride, block * BLOCK, head, BLOCK, DV)
            do_rows = _rows(d_out, d_out_stride, block * BLOCK, head, BLOCK, DV)
            first, last = _bounds(q_segments, q_positions, rows, BEFORE, AFTER, LONGEST)
            mean = tl.sum(o_rows.to(tl.float32) * do_rows.to(tl.float32), 1)
            dq_rows = tl.zeros([BLOCK, DK], tl.float32)
            begin, end = block * BLOCK - BEFORE, block * BLOCK + BLOCK - 1 + AFTER
            some, others = _near(start, stop, begin, end, TILE, IS_SELF)
            for key_tile in range(some, others):
                k_tile = _rows(k, k_stride, key_tile * TILE, head, TILE, DK)
                v_tile = _rows(v, v_stride, key_tile * TILE, head, TILE, DV)
                keys = key_tile * TILE + tl.arange(0, TILE)
                code = _codes(k_segments, k_positions, keys, LONGEST)
                _, ds = _p_and_ds(
                    q_rows, k_tile, v_tile, do_rows, tl.load(log_total + rows), mean,
                    rows, first, last, code, scale, head, seed, site, drop_p, LONGEST, DROPS,
                )  # fmt: skip
                dq_rows += tl.dot(tl.trans(ds), k_tile, input_precision="ieee")
            _store_rows(dq, dq_stride, block * BLOCK, head, dq_rows * scale, BLOCK, DK)
