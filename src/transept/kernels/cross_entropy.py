"""Label-smoothed cross-entropy of a chunk of logits, and its gradient in their place."""

import torch
import triton
import triton.language as tl

from transept.shapes import Float, Int, Tensor

BLOCK = 4096


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
        BLOCK=min(BLOCK, triton.next_power_of_2(v)), num_warps=8,
    )  # fmt: skip
    return losses


@triton.jit
def _cross_entropy(
    logits, target_ids, losses, scale, epsilon, pad_id, v, stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    logits += row.to(tl.int64) * stride
    target = tl.load(target_ids + row)
    highest = float("-inf")
    total, sum_of_logits = 0.0, 0.0
    if target != pad_id:
        right = tl.load(logits + target).to(tl.float32)
        for start in range(0, v, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            token = (columns < v) & (columns != pad_id)
            x = tl.load(logits + columns, token, float("-inf")).to(tl.float32)
            new_highest = tl.maximum(highest, tl.max(x, 0))
            total = total * tl.exp(highest - new_highest) + tl.sum(tl.exp(x - new_highest), 0)
            sum_of_logits += tl.sum(tl.where(token, x, 0.0), 0)
            highest = new_highest
        log_total = highest + tl.log(total)
        nll = log_total - right
        smooth = log_total - sum_of_logits / (v - 1)
        factor = tl.load(scale)
        tl.store(losses + 2 * row, (1 - epsilon) * nll + epsilon * smooth)
        tl.store(losses + 2 * row + 1, nll)
        for start in range(0, v, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            token = (columns < v) & (columns != pad_id)
            x = tl.load(logits + columns, token, float("-inf")).to(tl.float32)
            g = tl.exp(x - log_total) - epsilon / (v - 1)
            g = tl.where(columns == target, g - (1 - epsilon), g)
            g = tl.where(token, g * factor, 0.0)
            tl.store(logits + columns, g.to(logits.dtype.element_ty), columns < v)
    else:
        tl.store(losses + 2 * row, 0.0)
        tl.store(losses + 2 * row + 1, 0.0)
        for start in range(0, v, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            zero = tl.zeros([BLOCK], logits.dtype.element_ty)
            tl.store(logits + columns, zero, columns < v)
