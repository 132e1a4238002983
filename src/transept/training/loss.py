"""Label-smoothed cross-entropy, section 5.4. A sum over tokens: the trainer divides."""

from typing import Literal

import torch
from torch.nn import functional as F

from transept.shapes import Float, Int, Tensor

Smoothing = Literal["uniform", "wrong-only"]


def smoothed_targets(
    target_ids: Int[Tensor, " N"],
    vocab_size: int,
    *,
    label_smoothing: float,
    pad_id: int,
    smoothing: Smoothing = "uniform",
) -> Float[Tensor, "N V"]:
    """The distribution that the model should have given, with ε_ls spread over the vocabulary.

    Padding is no token: it gets nothing and does not count in V. `uniform` spreads over all V
    tokens, the right one too; `wrong-only` over the V − 1 others.
    """
    n_tokens = vocab_size - 1
    if smoothing == "uniform":
        spread = label_smoothing / n_tokens
        right = 1 - label_smoothing + spread
    else:
        spread = label_smoothing / (n_tokens - 1)
        right = 1 - label_smoothing
    targets = torch.full((len(target_ids), vocab_size), spread, device=target_ids.device)
    targets[:, pad_id] = 0.0
    return targets.scatter(1, target_ids[:, None], right)


def reference_loss(
    logits: Float[Tensor, "N V"],
    target_ids: Int[Tensor, " N"],
    *,
    label_smoothing: float,
    pad_id: int,
    smoothing: Smoothing = "uniform",
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed targets, summed over tokens that are not padding.

    In plain maths: −Σ_token Σ_v target_v · log p_v.
    """
    targets = smoothed_targets(
        target_ids,
        logits.shape[-1],
        label_smoothing=label_smoothing,
        pad_id=pad_id,
        smoothing=smoothing,
    )
    is_pad = torch.arange(logits.shape[-1], device=logits.device) == pad_id
    log_probabilities = F.log_softmax(logits.masked_fill(is_pad, -torch.inf), dim=-1)
    # 0 · −∞ is not a number, and padding has probability zero on both sides.
    terms = targets.to(logits.dtype) * log_probabilities.masked_fill(is_pad, 0.0)
    return -terms[target_ids != pad_id].sum()
