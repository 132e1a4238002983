"""Label-smoothed cross-entropy of a chunk of logits, and its gradient in their place."""

import torch
import triton
import triton.language as tl

from transept.engines.kernels.powers import LOG2_E
from transept.shapes import Float, Int, Tensor

BLOCK = 1024


def cross_entropy(
    logits: Float[Tensor, "N V"],
    target_ids: Int[Tensor, " N"],
    epsilon: float,
    pad_id: int,
    scale: Float[Tensor, ""],
) -> Float[Tensor, "N 2"]:
    """Each token's (smoothed, −log p); `logits` becomes `scale` times the gradient of the first.

    Padding costs nothing, gets no gradient, and is no token: ε is spread over the V − 1 others.
    """
    n, v = logits.shape
    losses = torch.empty(n, 2, dtype=torch.float32, device=logits.device)
    _cross_entropy[(n,)](
        logits, target_ids, losses, scale, epsilon, pad_id, v, logits.stride(0),
        BLOCK=min(BLOCK, triton.next_power_of_2(v)), num_warps=16,
    )  # fmt: skip
    return losses


@triton.jit
def _cross_entropy(
    logits, target_ids, losses, scale, epsilon, pad_id, v, stride, BLOCK: tl.constexpr
):
    """One token: three sweeps over its logits at most, the second and third from the cache."""
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
        # Two columns are special; it is cheaper to write them twice than to look for them.
        tl.debug_barrier()
        g = (tl.exp2(-nll * LOG2_E) - (1 - epsilon)) * factor - uniform
        tl.store(logits + target, g.to(logits.dtype.element_ty))
        tl.store(logits + pad_id, (0.0 * g).to(logits.dtype.element_ty))
    tl.store(losses + 2 * row, smoothed)
    tl.store(losses + 2 * row + 1, nll)


@triton.jit
def _log_total(logits, pad, v, BLOCK: tl.constexpr):
    """Log Σ exp of a row and its mean, without the padding's logit."""
    columns = tl.arange(0, BLOCK)
    # Any number near the highest keeps the sum in range; only the highest itself surely does.
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
