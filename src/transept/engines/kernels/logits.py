"""Kernels on logits: the loss and its gradient, and the likeliest tokens with their log p.

Triton requires powers of two: KP and CHUNKS_P are K and CHUNKS, rounded up to one.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from transept.engines.kernels.attention import LOG2_E
from transept.shapes import Float, Int, Tensor

LOSS_BLOCK = 1024


def cross_entropy(
    logits: Float[Tensor, "N V"],
    target_ids: Int[Tensor, " N"],
    epsilon: float,
    pad_id: int,
    scale: Float[Tensor, ""],
) -> Float[Tensor, "N 2"]:
    """(Smoothed loss, −log p) of each token; `logits` becomes `scale` times the loss's gradient.

    Padding has no loss and no gradient. It is not a token: ε is spread over the V − 1 others.
    """
    n, v = logits.shape
    losses = torch.empty(n, 2, dtype=torch.float32, device=logits.device)
    _cross_entropy[(n,)](
        logits, target_ids, losses, scale, epsilon, pad_id, v, logits.stride(0),
        BLOCK=min(LOSS_BLOCK, triton.next_power_of_2(v)), num_warps=16,
    )  # fmt: skip
    return losses


@triton.jit
def _cross_entropy(
    logits, target_ids, losses, scale, epsilon, pad_id, v, stride, BLOCK: tl.constexpr
):
    """One token, in at most three passes over its logits; all but the first hit the cache."""
    row = tl.program_id(0)
    logits += row.to(tl.int64) * stride
    target = tl.load(target_ids + row)
    smoothed = 0.0
    nll = 0.0
    if target == pad_id:
        _fill(logits, v, BLOCK)
    else:
        right, pad = tl.load(logits + target).to(tl.float32), tl.load(logits + pad_id)
        log_total, mean = _log_total(logits, pad.to(tl.float32), v, BLOCK)
        nll = log_total - right
        smoothed = (1 - epsilon) * nll + epsilon * (log_total - mean)
        factor = tl.load(scale)
        uniform = epsilon / (v - 1) * factor
        for start in range(0, v, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(logits + columns, columns < v, 0.0).to(tl.float32)
            g = tl.exp2(x * LOG2_E - log_total * LOG2_E) * factor - uniform
            tl.store(logits + columns, g.to(logits.dtype.element_ty), columns < v)
        # Two columns are special; writing them twice is cheaper than testing for them.
        tl.debug_barrier()
        g = (tl.exp2(-nll * LOG2_E) - (1 - epsilon)) * factor - uniform
        tl.store(logits + target, g.to(logits.dtype.element_ty))
        tl.store(logits + pad_id, (0.0 * g).to(logits.dtype.element_ty))
    tl.store(losses + 2 * row, smoothed)
    tl.store(losses + 2 * row + 1, nll)


@triton.jit
def _log_total(logits, pad, v, BLOCK: tl.constexpr):
    """Log Σ exp of a row and its mean, without the logit of padding."""
    columns = tl.arange(0, BLOCK)
    # A value near the maximum usually keeps the sum in range; only the maximum always does.
    base = tl.max(tl.load(logits + columns, columns < v, float("-inf")).to(tl.float32), 0)
    exponentials, plain = _sums(logits, base, v, BLOCK)
    if exponentials == float("inf"):
        for start in range(0, v, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(logits + columns, columns < v, float("-inf")).to(tl.float32)
            base = tl.maximum(base, tl.max(x, 0))
        exponentials, plain = _sums(logits, base, v, BLOCK)
    exponentials -= tl.exp2((pad - base) * LOG2_E)
    return base + tl.log(exponentials), (plain - pad) / (v - 1)


@triton.jit
def _sums(logits, base, v, BLOCK: tl.constexpr):
    """Σ exp(x − base) and Σ x."""
    exponentials = tl.zeros([BLOCK], tl.float32)
    plain = tl.zeros([BLOCK], tl.float32)
    full = v // BLOCK * BLOCK
    for start in range(0, full, BLOCK):
        x = tl.load(logits + start + tl.arange(0, BLOCK)).to(tl.float32)
        exponentials += tl.exp2(x * LOG2_E - base * LOG2_E)
        plain += x
    columns = full + tl.arange(0, BLOCK)
    x = tl.load(logits + columns, columns < v, float("-inf")).to(tl.float32)
    exponentials += tl.exp2(x * LOG2_E - base * LOG2_E)
    plain += tl.where(columns < v, x, 0.0)
    return tl.sum(exponentials, 0), tl.sum(plain, 0)


@triton.jit
def _fill(logits, v, BLOCK: tl.constexpr):
    for start in range(0, v, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        zero = tl.zeros([BLOCK], logits.dtype.element_ty)
        tl.store(logits + columns, zero, columns < v)


BLOCK, BLOCKS = 64, 64
"""Tokens per block of the vocabulary, and blocks per chunk."""


@dataclass(frozen=True, slots=True)
class SpecialIds:
    """The properties of a vocabulary that a search needs."""

    size: int
    """Size of the vocabulary. Columns of logits beyond it are ignored."""
    pad_id: int
    eos_id: int


def likeliest(
    logits: Float[Tensor, "N C"], k: int, symbols: SpecialIds, done: Int[Tensor, " R"], width: int
) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """Log p and ids of the k likeliest tokens of each row. Rows that are done are skipped.

    They are in the k blocks with the largest maxima. One pass over the vocabulary finds these and
    sums the exponentials; a second pass over the k blocks finds the tokens.
    """
    n, n_columns = logits.shape
    vocab_size, pad_id = symbols.size, symbols.pad_id
    n_chunks = triton.cdiv(vocab_size, BLOCK * BLOCKS)
    maxima = torch.empty(n, n_chunks * BLOCKS, device=logits.device)
    total = torch.empty(n, n_chunks, device=logits.device)
    _block_maxima[(n, n_chunks)](
        logits, done, maxima, total, n_columns, vocab_size, pad_id,
        W=width, CHUNKS=n_chunks, BLOCK=BLOCK, BLOCKS=BLOCKS, num_warps=8,
    )  # fmt: skip
    log_p = torch.empty(n, k, device=logits.device)
    token = torch.empty(n, k, dtype=torch.int32, device=logits.device)
    _likeliest[(n,)](
        logits, done, maxima, total, log_p, token, n_columns, vocab_size, pad_id,
        W=width, K=k, KP=triton.next_power_of_2(k), CHUNKS=n_chunks,
        CHUNKS_P=triton.next_power_of_2(n_chunks), BLOCK=BLOCK, BLOCKS=BLOCKS, num_warps=1,
    )  # fmt: skip
    return log_p, token


@triton.jit
def _block_maxima(
    logits, done, maxima, total, n_columns, vocab_size, pad_id,
    W: tl.constexpr, CHUNKS: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The maximum of each block of a chunk, and Σ exp(x − maximum) of the chunk."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    if tl.load(done + row // W) != 0:
        return
    block = chunk * BLOCKS + tl.arange(0, BLOCKS)
    at = block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    real = (at < vocab_size) & (at != pad_id)
    x = tl.load(logits + row.to(tl.int64) * n_columns + at, real, float("-inf"))
    of_blocks = tl.max(x, 1)
    tl.store(maxima + row * (CHUNKS * BLOCKS) + block, of_blocks)
    top = tl.max(of_blocks, 0)
    # If all values are −∞, the sum is 0.
    powers = tl.exp(x - tl.where(top == float("-inf"), 0.0, top))
    tl.store(total + row * CHUNKS + chunk, tl.sum(tl.sum(powers, 1), 0))


@triton.jit
def _likeliest(
    logits, done, maxima, total, log_p, token, n_columns, vocab_size, pad_id,
    W: tl.constexpr, K: tl.constexpr, KP: tl.constexpr,
    CHUNKS: tl.constexpr, CHUNKS_P: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    if tl.load(done + row // W) != 0:
        return
    nothing = float("-inf")
    c, k = tl.arange(0, CHUNKS_P), tl.arange(0, KP)
    number = tl.arange(0, CHUNKS_P * BLOCKS)
    of_blocks = tl.load(
        maxima + row * (CHUNKS * BLOCKS) + number, number < CHUNKS * BLOCKS, nothing
    )
    # log Σ exp of the row, from the sums of the chunks.
    tops = tl.max(tl.reshape(of_blocks, (CHUNKS_P, BLOCKS)), 1)
    sums = tl.load(total + row * CHUNKS + c, c < CHUNKS, 0.0)
    top = tl.max(tops, 0)
    top = tl.where(top == nothing, 0.0, top)
    log_sum = top + tl.log(tl.maximum(tl.sum(sums * tl.exp(tops - top), 0), 1e-37))
    chosen = tl.zeros((KP,), tl.int32)
    for rank in tl.static_range(K):
        largest, block = tl.max(of_blocks, 0, return_indices=True)
        of_blocks = tl.where(number == block, nothing, of_blocks)
        # If there are no more blocks, use one beyond the vocabulary.
        chosen = tl.where(k == rank, tl.where(largest > nothing, block, CHUNKS * BLOCKS), chosen)
    at = chosen[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    real = (k < K)[:, None] & (at < vocab_size) & (at != pad_id)
    x = tl.load(logits + row.to(tl.int64) * n_columns + at, real, nothing)
    # No argmax over a reshaped block: Triton may reorder its elements, but not their indices.
    for rank in tl.static_range(K):
        best = tl.max(tl.max(x, 1), 0)
        first = tl.min(tl.min(tl.where(x == best, at, CHUNKS * BLOCKS * BLOCK), 1), 0)
        tl.store(log_p + row * K + rank, best - log_sum)
        # If there are no more tokens, store a valid id. It is never chosen.
        tl.store(token + row * K + rank, tl.where(best > nothing, first, 0))
        x = tl.where(at == first, nothing, x)
