"""Cross-entropy with label smoothing, section 5.4. A sum over tokens: the trainer divides."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
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
    """The target distribution, with ε_ls spread over the vocabulary (label smoothing).

    Padding is not a token: it has probability 0 and does not count in V. The row of a padding
    position is zero. `uniform` spreads over all V tokens, `wrong-only` over the V − 1 wrong ones.
    """
    n_tokens = vocab_size - 1
    if smoothing == "uniform":
        spread = label_smoothing / n_tokens
        right = 1 - label_smoothing + spread
    else:
        spread = label_smoothing / (n_tokens - 1)
        right = 1 - label_smoothing
    targets = torch.full((len(target_ids), vocab_size), spread, device=target_ids.device)
    targets = targets.scatter(1, target_ids[:, None], right)
    targets[:, pad_id] = 0.0
    return targets * (target_ids != pad_id)[:, None]


def reference_loss(
    logits: Float[Tensor, "N V"],
    target_ids: Int[Tensor, " N"],
    *,
    label_smoothing: float,
    pad_id: int,
    smoothing: Smoothing = "uniform",
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed targets, summed over tokens that are not padding.

    Computes −Σ_token Σ_v target_v · log p_v literally; the reference for `Loss`.
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
    # 0 · −∞ is NaN, and padding has probability zero in both distributions.
    terms = targets.to(logits.dtype) * log_probabilities.masked_fill(is_pad, 0.0)
    return -terms[target_ids != pad_id].sum()


class LossSums(NamedTuple):
    """The loss of a batch, summed over its tokens."""

    smoothed: Float[Tensor, ""]
    """With label smoothing: the training objective."""
    nll: Float[Tensor, ""]
    """Without: −log p of the correct tokens. exp(nll / tokens) is the perplexity."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The projection to the vocabulary fused with the cross-entropy, in chunks.

    All logits of the paper's batch would take 3.7 GB. Each chunk computes its part of the loss and
    of the gradients immediately and frees its logits. Nothing is kept for the backward pass or
    computed twice. `reference_loss` computes the same without chunks.
    """

    label_smoothing: float
    pad_id: int
    smoothing: Smoothing = "uniform"

    def __call__(
        self,
        states: Float[Tensor, "N D"],
        projection: nn.Linear,
        target_ids: Int[Tensor, " N"],
    ) -> LossSums:
        """The sums over tokens that are not padding. Only `smoothed` has a gradient."""
        epsilon = self.uniform_smoothing(projection.out_features)
        smoothed, nll = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            states, projection.weight, projection.bias, target_ids, epsilon, self.pad_id
        )
        return LossSums(smoothed, nll)

    def uniform_smoothing(self, vocab_size: int) -> float:
        """The ε for which `uniform` smoothing gives the same targets."""
        if self.smoothing == "uniform":
            return self.label_smoothing
        return self.label_smoothing * (vocab_size - 1) / (vocab_size - 2)


CHUNK_ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 27}
"""Logits per chunk: few enough for a CPU's cache, enough to keep a GPU busy."""
CHUNK_ROWS = 128
"""Minimum rows per chunk. With fewer, reading and writing the gradient of the projection takes
longer than computing it."""


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target_ids: Tensor,
        epsilon: float,
        pad_id: int,
    ) -> tuple[Tensor, Tensor]:
        device = states.device.type
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        else:
            dtype = states.dtype
        x, w = states.to(dtype), weight.to(dtype)
        gradients = _Gradients.zero(x, weight, bias) if any(ctx.needs_input_grad) else None
        sums = states.new_zeros(2, dtype=torch.promote_types(dtype, torch.float32))
        # Label smoothing needs the mean logit, which is the logit of the mean row.
        n_tokens = len(weight) - 1
        mean_row = (weight.sum(0) - weight[pad_id]) / n_tokens
        mean_bias = 0.0 if bias is None else (bias.sum() - bias[pad_id]) / n_tokens
        mean_logits = (states @ mean_row + mean_bias).to(sums.dtype)
        chunk = max(CHUNK_ROWS, CHUNK_ELEMENTS[device] // len(weight))
        for start in range(0, len(x), chunk):
            rows = slice(start, start + chunk)
            logits = torch.mm(x[rows], w.T).to(sums.dtype)
            if bias is not None:
                logits += bias
            logits[:, pad_id] = -torch.inf
            ids = target_ids[rows]
            probabilities = logits.softmax(1)
            sums += _chunk_sums(logits, probabilities, ids, mean_logits[rows], epsilon, pad_id)
            if gradients is not None:
                _subtract_targets(probabilities, ids, epsilon, pad_id)
                gradients.add(rows, probabilities.to(dtype), x[rows], w)
        if gradients is not None:
            real = target_ids != pad_id
            gradients.smooth(epsilon, x, real, mean_row, pad_id)
            ctx.save_for_backward(*gradients)
        ctx.types = (states.dtype, weight.dtype)
        smoothed, nll = (part.clone() for part in sums.unbind())
        ctx.mark_non_differentiable(nll)
        return smoothed, nll

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        scale = outer[0]
        states, weight, bias = ctx.saved_tensors
        states_type, weight_type = ctx.types
        return (
            (states * scale).to(states_type),
            (weight * scale).to(weight_type),
            None if bias is None else bias * scale,
            None,
            None,
            None,
        )


def _chunk_sums(
    logits: Tensor,
    probabilities: Tensor,
    target_ids: Tensor,
    mean_logits: Tensor,
    epsilon: float,
    pad_id: int,
) -> Tensor:
    """The sums (smoothed, nll) of a chunk."""
    real = (target_ids != pad_id).to(logits.dtype)
    # log Σ exp from the softmax, whose largest value cannot underflow.
    highest, where = logits.max(1)
    log_total = highest - probabilities.gather(1, where[:, None]).squeeze(1).log()
    right = logits.gather(1, target_ids[:, None]).squeeze(1)
    # The logit of a padding target is −∞, and 0 · ∞ is NaN.
    nll = (log_total - right).where(real > 0, 0.0).sum()
    smooth = ((log_total - mean_logits) * real).sum()
    return torch.stack([(1 - epsilon) * nll + epsilon * smooth, nll])


def _subtract_targets(
    probabilities: Tensor, target_ids: Tensor, epsilon: float, pad_id: int
) -> None:
    """Turn probabilities into ∂smoothed/∂logits, except for the −ε/V term, which `smooth` adds."""
    right = torch.full_like(probabilities[:, :1], epsilon - 1)
    probabilities.scatter_add_(1, target_ids[:, None], right)
    real = target_ids != pad_id
    # On a CPU, padding is usually already removed, and checking is cheaper than multiplying.
    if not (real.is_cpu and bool(real.all())):
        probabilities *= real[:, None]


class _Gradients(NamedTuple):
    """Gradients of the summed loss, accumulated chunk by chunk."""

    states: Tensor
    weight: Tensor
    bias: Tensor | None

    @classmethod
    def zero(cls, x: Tensor, weight: Tensor, bias: Tensor | None) -> "_Gradients":
        return cls(
            torch.empty_like(x),
            torch.zeros_like(weight),
            None if bias is None else torch.zeros_like(bias),
        )

    def add(self, rows: slice, dlogits: Tensor, x: Tensor, w: Tensor) -> None:
        """Add the gradients of a chunk."""
        self.states[rows] = torch.mm(dlogits, w)
        if dlogits.dtype == self.weight.dtype:
            self.weight.addmm_(dlogits.T, x)
        else:
            self.weight.add_(dlogits.T @ x)
        if self.bias is not None:
            self.bias.add_(dlogits.sum(0))

    def smooth(
        self, epsilon: float, x: Tensor, real: Tensor, mean_row: Tensor, pad_id: int
    ) -> None:
        """Add the gradient of −ε · (mean logit), which is the same for every row."""
        n_tokens = len(self.weight) - 1
        share = epsilon / n_tokens
        self.states.sub_((epsilon * mean_row).to(x.dtype) * real[:, None])
        sum_of_states = (x * real[:, None]).sum(0, dtype=self.weight.dtype)
        column = torch.full_like(self.weight[:, :1], share)
        column[pad_id] = 0.0
        self.weight.addcmul_(column, sum_of_states, value=-1)
        if self.bias is not None:
            self.bias.sub_(column.squeeze(1) * real.sum())
