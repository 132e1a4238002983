"""The three sub-layers, each with its residual connection: forward, and backward by hand.

LayerNorm(x + Dropout(Sublayer(x))). A sub-layer keeps on a tape what its backward pass needs.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from transept.engines.kernels.attention import Sight, attend, attend_backward
from transept.engines.kernels.dropout import Drop
from transept.engines.kernels.relu import relu_backward
from transept.engines.kernels.residual import Saved, add_norm, add_norm_backward
from transept.engines.training.matrix import Copies, Matrix, gradient_of
from transept.model.attention import MultiHeadAttention
from transept.model.layers import FeedForward, PostNorm
from transept.shapes import Float, Int, Tensor


@dataclass(frozen=True, slots=True)
class Residual:
    """The residual connection around a sub-layer."""

    norm: nn.LayerNorm
    drop: Drop

    @classmethod
    def of(cls, module: PostNorm, seed: Int[Tensor, "2"], site: int) -> "Residual":
        """The fast form of a module."""
        return cls(module.norm, Drop(module.dropout.p, seed, site))

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Saved]:
        """LayerNorm(x + Dropout(y))."""
        norm = self.norm
        return add_norm(x, y, norm.weight, norm.bias, norm.eps, self.drop)

    def backward(
        self, d_out: Tensor, saved: Saved, d_bias: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """∂/∂x and ∂/∂y; and where y ends in a bias, its gradient is added to."""
        weight, bias = self.norm.weight, self.norm.bias
        sums = [gradient_of(weight), gradient_of(bias)]
        if d_bias is not None:
            sums.append(d_bias)
        return add_norm_backward(d_out, saved, weight, self.drop, sums)


class SelfAttentionTape(NamedTuple):
    """What a self-attention needs for its backward pass."""

    x: Tensor
    qkv: Tensor
    heads: Tensor
    log_total: Tensor
    sight: Sight
    norm: Saved


class SelfAttention:
    """Multi-head attention of a sequence to itself."""

    def __init__(self, module: MultiHeadAttention, residual: Residual, copies: Copies) -> None:
        self.module, self.residual = module, residual
        self.drop = residual.drop._replace(p=module.dropout)
        weight, out = module.w_qkv.weight, module.w_o.weight
        self.w_qkv = Matrix(copies.of([weight]), gradient_of(weight))
        self.w_o = Matrix(copies.of([out]), gradient_of(out))

    def forward(
        self, x: Float[Tensor, "N D"], sight: Sight
    ) -> tuple[Float[Tensor, "N D"], SelfAttentionTape]:
        """One sub-layer."""
        qkv = self.w_qkv(x)
        heads, log_total = attend(*self.module.split(qkv), sight, self.module.n_heads, self.drop)
        out, norm = self.residual(x, self.w_o(heads))
        return out, SelfAttentionTape(x, qkv, heads, log_total, sight, norm)

    def backward(
        self, d_out: Float[Tensor, "N D"], tape: SelfAttentionTape
    ) -> Float[Tensor, "N D"]:
        """∂/∂x."""
        dx, dy = self.residual.backward(d_out, tape.norm)
        d_heads = self.w_o.backward(dy, tape.heads, None)
        d_qkv = torch.empty_like(tape.qkv)
        split = self.module.split
        attend_backward(
            *split(tape.qkv), tape.heads, tape.log_total, d_heads, tape.sight, self.drop,
            split(d_qkv),
        )  # fmt: skip
        return self.w_qkv.backward(d_qkv, tape.x, dx)


class SourceAttentionTape(NamedTuple):
    """What an attention to the source needs for its backward pass."""

    y: Tensor
    q: Tensor
    kv: Tensor
    heads: Tensor
    log_total: Tensor
    sight: Sight
    norm: Saved


class SourceAttention:
    """Multi-head attention of the target to the source, whose keys and values are given."""

    def __init__(self, module: MultiHeadAttention, residual: Residual, copies: Copies) -> None:
        self.module, self.residual = module, residual
        self.drop = residual.drop._replace(p=module.dropout)
        weight, out = module.w_qkv.weight, module.w_o.weight
        self.w_q = Matrix(copies.of([module.w_q[0]]), gradient_of(weight)[: module.h_dk])
        self.w_o = Matrix(copies.of([out]), gradient_of(out))

    def forward(
        self, y: Float[Tensor, "N D"], kv: Float[Tensor, "N kv"], sight: Sight
    ) -> tuple[Float[Tensor, "N D"], SourceAttentionTape]:
        """One sub-layer."""
        q = self.w_q(y)
        heads, log_total = attend(q, *self._split(kv), sight, self.module.n_heads, self.drop)
        out, norm = self.residual(y, self.w_o(heads))
        return out, SourceAttentionTape(y, q, kv, heads, log_total, sight, norm)

    def backward(
        self, d_out: Float[Tensor, "N D"], tape: SourceAttentionTape, d_kv: Float[Tensor, "N kv"]
    ) -> Float[Tensor, "N D"]:
        """∂/∂y; ∂/∂kv is written into `d_kv`."""
        dy, d_inner = self.residual.backward(d_out, tape.norm)
        d_heads = self.w_o.backward(d_inner, tape.heads, None)
        dq = torch.empty_like(tape.q)
        attend_backward(
            tape.q, *self._split(tape.kv), tape.heads, tape.log_total, d_heads, tape.sight,
            self.drop, (dq, *self._split(d_kv)),
        )  # fmt: skip
        return self.w_q.backward(dq, tape.y, dy)

    def _split(self, kv: Tensor) -> tuple[Tensor, Tensor]:
        return kv[:, : self.module.h_dk], kv[:, self.module.h_dk :]


class FeedForwardTape(NamedTuple):
    """What a feed-forward network needs for its backward pass."""

    x: Tensor
    inner: Tensor
    norm: Saved


class PositionWise:
    """The feed-forward network, equation (2)."""

    def __init__(self, module: FeedForward, residual: Residual, copies: Copies) -> None:
        self.residual = residual
        first, second = module.w_1, module.w_2
        self.w_1 = Matrix(copies.of([first.weight]), gradient_of(first.weight))
        self.w_2 = Matrix(copies.of([second.weight]), gradient_of(second.weight))
        self.b_1, self.b_2 = copies.of([first.bias]), copies.of([second.bias])
        self.d_b_1, self.d_b_2 = gradient_of(first.bias), gradient_of(second.bias)

    def forward(self, x: Float[Tensor, "N D"]) -> tuple[Float[Tensor, "N D"], FeedForwardTape]:
        """One sub-layer."""
        # The ReLU is done while the product is still on the chip.
        inner = torch._addmm_activation(self.b_1, x, self.w_1.value.T)
        out, norm = self.residual(x, torch.addmm(self.b_2, inner, self.w_2.value.T))
        return out, FeedForwardTape(x, inner, norm)

    def backward(self, d_out: Float[Tensor, "N D"], tape: FeedForwardTape) -> Float[Tensor, "N D"]:
        """∂/∂x."""
        dx, dy = self.residual.backward(d_out, tape.norm, self.d_b_2)
        d_inner = self.w_2.backward(dy, tape.inner, None)
        relu_backward(d_inner, tape.inner, self.d_b_1)
        return self.w_1.backward(d_inner, tape.x, dx)
