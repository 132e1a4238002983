"""Scaled dot-product attention, equation (1), and multi-head attention, section 3.2.2."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from torch import nn
from torch.nn import functional as F

from transept.errors import ConfigError, Problem
from transept.model.packing import Blocks, Layout
from transept.shapes import Bool, Float, Tensor


@runtime_checkable
class Attend(Protocol):
    """A callable that computes scaled dot-product attention, equation (1)."""

    def __call__(
        self,
        q: Float[Tensor, "B H T Dk"],
        k: Float[Tensor, "B H S Dk"],
        v: Float[Tensor, "B H S Dv"],
        mask: Bool[Tensor, "B T S"],
        dropout: float = 0.0,
    ) -> Float[Tensor, "B H T Dv"]:
        """Attention(Q, K, V) with illegal positions masked out."""


def attention_weights(
    q: Float[Tensor, "B H T Dk"], k: Float[Tensor, "B H S Dk"], mask: Bool[Tensor, "B T S"]
) -> Float[Tensor, "B H T S"]:
    """The softmax of equation (1): the weight of each value for each query."""
    d_k = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_k)
    scores = scores.masked_fill(~mask[:, None], -torch.inf)
    return scores.softmax(dim=-1)


def reference_attention(
    q: Float[Tensor, "B H T Dk"],
    k: Float[Tensor, "B H S Dk"],
    v: Float[Tensor, "B H S Dv"],
    mask: Bool[Tensor, "B T S"],
    dropout: float = 0.0,
) -> Float[Tensor, "B H T Dv"]:
    """Equation (1) literally: softmax(Q Kᵀ / √d_k) V. Slow; the reference for all engines."""
    weights = attention_weights(q, k, mask)
    return F.dropout(weights, dropout) @ v


def fused_attention(
    q: Float[Tensor, "B H T Dk"],
    k: Float[Tensor, "B H S Dk"],
    v: Float[Tensor, "B H S Dv"],
    mask: Bool[Tensor, "B T S"],
    dropout: float = 0.0,
) -> Float[Tensor, "B H T Dv"]:
    """Equation (1) with torch's fused kernels, which never store the whole weight matrix."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None], dropout_p=dropout)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O, head_i = Attention(QW_Q, KW_K, VW_V).

    W_Q, W_K and W_V of all heads are stacked in one matrix, so that self-attention projects with
    a single matrix multiplication. `d_k` and `d_v` are independent of `d_model` and of each other.
    """

    probe: Callable[[Float[Tensor, "B H T S"]], None] | None = None
    """Receives the attention weights. Set by `record_attention` while it is active."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_k: int,
        d_v: int,
        *,
        dropout: float = 0.0,
        bias: bool = False,
        attend: Attend = fused_attention,
    ) -> None:
        super().__init__()
        self.n_heads, self.d_k, self.d_v = n_heads, d_k, d_v
        self.h_dk, self.h_dv = n_heads * d_k, n_heads * d_v
        self.w_qkv = nn.Linear(d_model, 2 * self.h_dk + self.h_dv, bias=bias)
        self.w_o = nn.Linear(self.h_dv, d_model, bias=bias)
        self.dropout = dropout
        self.attend = attend

    def split(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split the rows of `w_qkv`, or its output, into the parts of Q, K and V."""
        q, k, v = projected.split([self.h_dk, self.h_dk, self.h_dv], dim=-1)
        return q, k, v

    @property
    def w_q(self) -> tuple[Float[Tensor, "HDk D"], Float[Tensor, " HDk"] | None]:
        """The rows of `w_qkv` that project to queries, and their bias."""
        weight, bias = self.w_qkv.weight, self.w_qkv.bias
        return weight[: self.h_dk], None if bias is None else bias[: self.h_dk]

    @property
    def w_kv(self) -> tuple[Float[Tensor, "kv D"], Float[Tensor, " kv"] | None]:
        """The rows of `w_qkv` that project to keys and values, and their bias."""
        weight, bias = self.w_qkv.weight, self.w_qkv.bias
        return weight[self.h_dk :], None if bias is None else bias[self.h_dk :]

    def forward(
        self,
        x: Float[Tensor, "Nt D"],
        memory: Float[Tensor, "Ns D"] | None,
        layout: Layout,
        memory_layout: Layout,
        mask: Bool[Tensor, "B T S"] | Blocks,
    ) -> Float[Tensor, "Nt D"]:
        """Attend from `x` to `memory`, or to `x` itself if `memory` is None."""
        q, k, v = map(self._heads, self._project(x, memory, layout, memory_layout))
        if self.probe is not None:
            self.probe(attention_weights(q, k, mask.whole if isinstance(mask, Blocks) else mask))
        dropout = self.dropout if self.training else 0.0
        if isinstance(mask, Blocks):
            heads = mask.attend(self.attend, q, k, v, dropout)
        else:
            heads = self.attend(q, k, v, mask, dropout)
        concatenated = layout.to_flat(heads.transpose(1, 2).flatten(2))
        out: Tensor = self.w_o(concatenated)
        return out

    def _project(
        self, x: Tensor, memory: Tensor | None, layout: Layout, memory_layout: Layout
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`, keys and values of `memory` (or of `x`), arranged in rows."""
        if memory is None:
            return self.split(layout.to_rows(self.w_qkv(x)))
        q, kv = F.linear(x, *self.w_q), F.linear(memory, *self.w_kv)
        k, v = memory_layout.to_rows(kv).split([self.h_dk, self.h_dv], dim=-1)
        return layout.to_rows(q), k, v

    def _heads(self, x: Float[Tensor, "B L HDh"]) -> Float[Tensor, "B H L Dh"]:
        return x.view(*x.shape[:2], self.n_heads, -1).transpose(1, 2)


def require_equation_1(model: nn.Module, who: str) -> None:
    """Raise ConfigError if a network uses custom attention, which `who` does not support."""
    for name, module in model.named_modules():
        if not isinstance(module, MultiHeadAttention):
            continue
        if module.attend not in (reference_attention, fused_attention):
            own = getattr(module.attend, "__name__", type(module.attend).__name__)
            what = f"uses the custom attention {own}, but {who} supports only equation (1)"
            raise ConfigError([Problem(name, f"{what}; see docs/guides/vary.md")])


@contextmanager
def record_attention(model: nn.Module) -> Iterator[dict[str, Float[Tensor, "B H T S"]]]:
    """Record the weights of every attention module while a model runs.

    Yields a dictionary that holds the weights of the last forward pass. The keys are module names,
    such as `encoder.layers.0.self_attention`. Rows and columns are those of the batch's layout: in
    a padded batch, sentences and positions.

    Example:
        >>> model = transept.Transformer(transept.ModelConfig.preset("tiny", vocab_size=100))
        >>> source_ids, target_ids = torch.tensor([[5, 6, 1]]), torch.tensor([[7, 8, 9, 1]])
        >>> with record_attention(model) as weights:
        ...     logits = model(source_ids, target_ids)
        >>> weights["decoder.layers.1.source_attention"].shape  # sentences, heads, queries, keys
        torch.Size([1, 4, 4, 3])
    """
    require_equation_1(model, "record_attention")
    weights: dict[str, Tensor] = {}
    attentions = {n: m for n, m in model.named_modules() if isinstance(m, MultiHeadAttention)}
    for name, attention in attentions.items():

        def record(w: Tensor, name: str = name) -> None:
            weights[name] = w.detach()

        attention.probe = record
    try:
        yield weights
    finally:
        for attention in attentions.values():
            del attention.probe
