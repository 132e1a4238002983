"""Equation (1) on tiles: sentences lie in tiles of tokens, and see each other only within.

One program computes one head of one tile. A tile's queries see the keys of a span of tiles, nearly
always the tile itself: only a sentence longer than a tile makes the span longer. Scores never
leave the chip; the backward pass computes them again.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from transept.shapes import Float, Int, Tensor

LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class Side:
    """What tells the tokens of one side of an attention apart."""

    segments: Int[Tensor, " N"]
    """The number of each token's sentence; 0 is padding."""
    positions: Int[Tensor, " N"]
    """Its place in the sentence."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Which keys the queries see: those of the same sentence, within a band of distances."""

    queries: Side
    keys: Side
    spans: Int[Tensor, "tiles 2"]
    """For each tile, the first tile that it sees and the one after the last; the same both ways."""
    tile: int
    before: int | None = None
    after: int | None = None


def spans(
    sides: tuple[Int[Tensor, " N"], ...], tile: int, row_tiles: int
) -> Int[Tensor, "tiles 2"]:
    """The span of each tile, from the segments of both sides.

    A sentence stays within `row_tiles` tiles, counted from a multiple of that. Where one crosses
    from a tile into the next, on either side, the tiles of its row all see each other.
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
    sight: Sight,
    n_heads: int,
) -> tuple[Float[Tensor, "N HDv"], Float[Tensor, "H N"]]:
    """The heads side by side, and log Σ exp of each query's scores, for the backward pass."""
    d_k, d_v = q.shape[1] // n_heads, v.shape[1] // n_heads
    out = torch.empty(len(q), n_heads * d_v, dtype=q.dtype, device=q.device)
    log_total = torch.empty(n_heads, len(q), dtype=torch.float32, device=q.device)
    _forward[(len(q) // sight.tile, n_heads)](
        q, k, v, out, log_total,
        *_what_is_seen(sight),
        q.stride(0), k.stride(0), v.stride(0), out.stride(0), len(q),
        d_k**-0.5,
        **_constants(sight, d_k, d_v), num_warps=8 if sight.tile > 64 else 4,
    )  # fmt: skip
    return out, log_total


def attend_backward(
    q: Float[Tensor, "N HDk"],
    k: Float[Tensor, "N HDk"],
    v: Float[Tensor, "N HDv"],
    out: Float[Tensor, "N HDv"],
    log_total: Float[Tensor, "H N"],
    d_out: Float[Tensor, "N HDv"],
    sight: Sight,
    gradients: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Write ∂/∂q, ∂/∂k and ∂/∂v into `gradients`, which have the shapes of q, k and v."""
    n_heads = len(log_total)
    d_k, d_v = q.shape[1] // n_heads, v.shape[1] // n_heads
    dq, dk, dv = gradients
    _backward[(len(q) // sight.tile, n_heads)](
        q, k, v, out, log_total, d_out, dq, dk, dv,
        *_what_is_seen(sight),
        q.stride(0), k.stride(0), v.stride(0), out.stride(0), d_out.stride(0),
        dq.stride(0), dk.stride(0), dv.stride(0), len(q),
        d_k**-0.5,
        **_constants(sight, d_k, d_v), BLOCK=min(64, sight.tile), num_warps=8,
    )  # fmt: skip


def _what_is_seen(sight: Sight) -> tuple[Tensor, ...]:
    queries, keys = sight.queries, sight.keys
    return queries.segments, queries.positions, keys.segments, keys.positions, sight.spans


def _constants(sight: Sight, d_k: int, d_v: int) -> dict[str, int]:
    unlimited = 1 << 30
    return {
        "BEFORE": unlimited if sight.before is None else sight.before,
        "AFTER": unlimited if sight.after is None else sight.after,
        "TILE": sight.tile,
        "DK": d_k,
        "DV": d_v,
    }


@triton.jit
def _rows(pointer, stride, rows, head, D: tl.constexpr):
    """The vectors of one head at these rows."""
    columns = head * D + tl.arange(0, D)
    return tl.load(pointer + rows[:, None].to(tl.int64) * stride + columns[None, :])


@triton.jit
def _store_rows(pointer, stride, rows, head, values, D: tl.constexpr):
    columns = head * D + tl.arange(0, D)
    at = pointer + rows[:, None].to(tl.int64) * stride + columns[None, :]
    tl.store(at, values.to(pointer.dtype.element_ty))


@triton.jit
def _scores(q, k, q_segment, q_position, k_segment, k_position, scale,
            BEFORE: tl.constexpr, AFTER: tl.constexpr):  # fmt: skip
    """Q Kᵀ / √d_k, in units of log 2, with illegal positions at −∞."""
    scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)
    distance = k_position[None, :] - q_position[:, None]
    legal = q_segment[:, None] == k_segment[None, :]
    legal = legal & (distance >= -BEFORE) & (distance <= AFTER)
    return tl.where(legal, scores, float("-inf"))


@triton.jit
def _forward(
    q, k, v, out, log_total,
    q_segments, q_positions, k_segments, k_positions, spans,
    q_stride, k_stride, v_stride, out_stride, n,
    scale,
    BEFORE: tl.constexpr, AFTER: tl.constexpr, TILE: tl.constexpr,
    DK: tl.constexpr, DV: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1)
    place = tl.arange(0, TILE)
    rows = tile * TILE + place
    q_tile = _rows(q, q_stride, rows, head, DK)
    q_segment, q_position = tl.load(q_segments + rows), tl.load(q_positions + rows)
    highest = tl.full([TILE], float("-inf"), tl.float32)
    total = tl.zeros([TILE], tl.float32)
    sums = tl.zeros([TILE, DV], tl.float32)
    for seen in range(tl.load(spans + 2 * tile), tl.load(spans + 2 * tile + 1)):
        keys = seen * TILE + place
        k_tile, v_tile = _rows(k, k_stride, keys, head, DK), _rows(v, v_stride, keys, head, DV)
        scores = _scores(
            q_tile, k_tile, q_segment, q_position,
            tl.load(k_segments + keys), tl.load(k_positions + keys), scale, BEFORE, AFTER,
        )  # fmt: skip
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        # A query that sees nothing (padding) has no highest score: take 0, and p is 0.
        base = tl.where(new_highest == float("-inf"), 0.0, new_highest)
        p = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(highest - base)
        total = total * shrink + tl.sum(p, 1)
        sums = sums * shrink[:, None] + tl.dot(p.to(v_tile.dtype), v_tile)
        highest = new_highest
    total = tl.where(total == 0.0, 1.0, total)
    highest = tl.where(highest == float("-inf"), 0.0, highest)
    _store_rows(out, out_stride, rows, head, sums / total[:, None], DV)
    tl.store(log_total + head * n + rows, highest + tl.log2(total))


@triton.jit
def _p_and_ds(
    q, k, v, o, do, log_total, q_segment, q_position, k_segment, k_position, scale,
    BEFORE: tl.constexpr, AFTER: tl.constexpr,
):  # fmt: skip
    """The weights again, and the gradient of the scores before their scaling."""
    scores = _scores(
        q, k, q_segment, q_position, k_segment, k_position, scale, BEFORE, AFTER
    )
    p = tl.exp2(scores - log_total[:, None])
    dp = tl.dot(do, tl.trans(v))
    mean = tl.sum(o.to(tl.float32) * do.to(tl.float32), 1)
    return p, p * (dp - mean[:, None]) * scale


@triton.jit
def _backward(
    q, k, v, out, log_total, d_out, dq, dk, dv,
    q_segments, q_positions, k_segments, k_positions, spans,
    q_stride, k_stride, v_stride, out_stride, d_out_stride, dq_stride, dk_stride, dv_stride, n,
    scale,
    BEFORE: tl.constexpr, AFTER: tl.constexpr, TILE: tl.constexpr,
    DK: tl.constexpr, DV: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(0), tl.program_id(1)
    first, stop = tl.load(spans + 2 * tile), tl.load(spans + 2 * tile + 1)
    alone = stop - first == 1
    keys = tile * TILE + tl.arange(0, TILE)
    k_tile, v_tile = _rows(k, k_stride, keys, head, DK), _rows(v, v_stride, keys, head, DV)
    k_segment, k_position = tl.load(k_segments + keys), tl.load(k_positions + keys)
    dk_tile = tl.zeros([TILE, DK], tl.float32)
    dv_tile = tl.zeros([TILE, DV], tl.float32)
    PARTS: tl.constexpr = TILE // BLOCK
    for part in range(first * PARTS, stop * PARTS):
        rows = part * BLOCK + tl.arange(0, BLOCK)
        q_part, o_part = _rows(q, q_stride, rows, head, DK), _rows(out, out_stride, rows, head, DV)
        do_part = _rows(d_out, d_out_stride, rows, head, DV)
        p, ds = _p_and_ds(
            q_part, k_tile, v_tile, o_part, do_part, tl.load(log_total + head * n + rows),
            tl.load(q_segments + rows), tl.load(q_positions + rows), k_segment, k_position,
            scale, BEFORE, AFTER,
        )  # fmt: skip
        ds = ds.to(q_part.dtype)
        dv_tile += tl.dot(tl.trans(p.to(do_part.dtype)), do_part)
        dk_tile += tl.dot(tl.trans(ds), q_part)
        if alone:
            _store_rows(dq, dq_stride, rows, head, tl.dot(ds, k_tile), DK)
    _store_rows(dk, dk_stride, keys, head, dk_tile, DK)
    _store_rows(dv, dv_stride, keys, head, dv_tile, DV)
    if not alone:
        # The keys that this tile's queries see lie in several tiles: add up what they give.
        for part in range(tile * PARTS, (tile + 1) * PARTS):
            rows = part * BLOCK + tl.arange(0, BLOCK)
            q_part = _rows(q, q_stride, rows, head, DK)
            o_part = _rows(out, out_stride, rows, head, DV)
            do_part = _rows(d_out, d_out_stride, rows, head, DV)
            total = tl.load(log_total + head * n + rows)
            q_segment, q_position = tl.load(q_segments + rows), tl.load(q_positions + rows)
            dq_part = tl.zeros([BLOCK, DK], tl.float32)
            for seen in range(first, stop):
                others = seen * TILE + tl.arange(0, TILE)
                k_other = _rows(k, k_stride, others, head, DK)
                _, ds = _p_and_ds(
                    q_part, k_other, _rows(v, v_stride, others, head, DV), o_part, do_part, total,
                    q_segment, q_position,
                    tl.load(k_segments + others), tl.load(k_positions + others),
                    scale, BEFORE, AFTER,
                )  # fmt: skip
                dq_part += tl.dot(ds.to(k_other.dtype), k_other)
            _store_rows(dq, dq_stride, rows, head, dq_part, DK)
