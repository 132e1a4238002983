"""Attention of one new token per row, to the previous tokens and to the source, section 3.2.3.

A row is a hypothesis. The W rows of a sentence are adjacent in its slot.
"""

import math

import torch
import triton
import triton.language as tl

from transept.engines.kernels.beams import DeviceBeams
from transept.shapes import Float, Int, Tensor

KEYS = 32
"""Keys per iteration."""
ROWS = tl.constexpr(16)
"""Tensor cores need at least this many rows; smaller beams are padded."""


def attend_past(
    qkv: Float[Tensor, "N qkv"],
    cache: Float[Tensor, "R W L 2 D"],
    beams: DeviceBeams,
    n_heads: int,
) -> Float[Tensor, "N D"]:
    """Store the key and value of each row, and attend to them and to those of previous tokens.

    Keys are never moved: `beams.origin` holds, for each position, the row that stores the past of a
    row.
    """
    n_slots, width, n_positions, _, d_model = cache.shape
    n, d_head = n_slots * width, d_model // n_heads
    out = torch.empty(n, d_model, dtype=qkv.dtype, device=qkv.device)
    _attend_past[(n, n_heads)](
        qkv, cache, beams.origin, beams.length, beams.done, out,
        beams.origin.stride(0), n_positions, 1 / math.sqrt(d_head),
        W=width, D=d_model, D_HEAD=d_head, KEYS=KEYS, num_warps=1,
    )  # fmt: skip
    return out


def attend_source(
    q: Float[Tensor, "N D"],
    source: Float[Tensor, "R S Y 2 D"],
    source_length: Int[Tensor, " R"],
    beams: DeviceBeams,
    layer: int,
    n_heads: int,
) -> Float[Tensor, "N D"]:
    """Attend to the source. All W rows of a sentence share its keys and values."""
    n_slots, n_positions, n_layers, _, d_model = source.shape
    d_head = d_model // n_heads
    out = torch.empty_like(q)
    _attend_source[(n_slots, n_heads)](
        q, source, source_length, beams.done, out, n_positions, layer, 1 / math.sqrt(d_head),
        W=len(q) // n_slots, Y=n_layers, D=d_model, D_HEAD=d_head, KEYS=KEYS, num_warps=2,
    )  # fmt: skip
    return out


@triton.jit
def _attend_past(
    qkv, cache, origin, length, done, out, table_size, n_positions, scale,
    W: tl.constexpr, D: tl.constexpr, D_HEAD: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    slot = row // W
    d = head * D_HEAD + tl.arange(0, D_HEAD)
    if tl.load(done + slot) != 0:
        # The output is not used, but uninitialized memory might be NaN.
        tl.store(out + row * D + d, tl.zeros((D_HEAD,), out.dtype.element_ty))
        return
    here = tl.load(length + slot)
    q = tl.load(qkv + row * (3 * D) + d).to(tl.float32) * scale
    k_here = tl.load(qkv + row * (3 * D) + D + d)
    v_here = tl.load(qkv + row * (3 * D) + 2 * D + d)
    own = cache + (row.to(tl.int64) * n_positions + here) * (2 * D) + d
    tl.store(own, k_here)
    tl.store(own + D, v_here)
    # The running softmax starts with the row's own token.
    largest = tl.sum(q * k_here.to(tl.float32), 0)
    total = 1.0
    summed = v_here.to(tl.float32)
    table = origin + (here % 2) * table_size + row * n_positions
    for start in range(0, here, KEYS):
        position = start + tl.arange(0, KEYS)
        past = position < here
        kept_in = slot * W + tl.load(table + position, past, 0).to(tl.int32)
        at = (kept_in.to(tl.int64) * n_positions + position) * (2 * D)
        inside = past[:, None]
        k = tl.load(cache + at[:, None] + d[None, :], inside, 0.0).to(tl.float32)
        v = tl.load(cache + at[:, None] + (D + d)[None, :], inside, 0.0).to(tl.float32)
        score = tl.where(past, tl.sum(q[None, :] * k, 1), float("-inf"))
        larger = tl.maximum(largest, tl.max(score, 0))
        weight = tl.exp(score - larger)
        shrunk = tl.exp(largest - larger)
        total = total * shrunk + tl.sum(weight, 0)
        summed = summed * shrunk + tl.sum(weight[:, None] * v, 0)
        largest = larger
    tl.store(out + row * D + d, (summed / total).to(out.dtype.element_ty))


@triton.jit
def _attend_source(
    q, source, source_length, done, out, n_positions, layer, scale,
    W: tl.constexpr, Y: tl.constexpr, D: tl.constexpr, D_HEAD: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    slot, head = tl.program_id(0), tl.program_id(1)
    d = head * D_HEAD + tl.arange(0, D_HEAD)
    w = tl.arange(0, ROWS)
    rows = (slot * W + w)[:, None] * D + d[None, :]
    if tl.load(done + slot) != 0:
        tl.store(out + rows, tl.zeros((ROWS, D_HEAD), out.dtype.element_ty), (w < W)[:, None])
        return
    n_keys = tl.load(source_length + slot)
    q_rows = tl.load(q + rows, (w < W)[:, None], 0.0)
    largest = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    summed = tl.zeros((ROWS, D_HEAD), tl.float32)
    first = source + slot.to(tl.int64) * n_positions * (Y * 2 * D) + layer * (2 * D)
    for start in range(0, n_keys, KEYS):
        position = start + tl.arange(0, KEYS)
        inside = (position < n_keys)[:, None]
        at = position[:, None] * (Y * 2 * D) + d[None, :]
        k = tl.load(first + at, inside, 0.0)
        v = tl.load(first + at + D, inside, 0.0)
        score = tl.dot(q_rows, tl.trans(k), input_precision="ieee") * scale
        score = tl.where((position < n_keys)[None, :], score, float("-inf"))
        larger = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp(score - larger[:, None])
        shrunk = tl.exp(largest - larger)
        total = total * shrunk + tl.sum(weight, 1)
        summed = summed * shrunk[:, None]
        summed += tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        largest = larger
    tl.store(out + rows, (summed / total[:, None]).to(out.dtype.element_ty), (w < W)[:, None])
