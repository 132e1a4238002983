"""The operations of the layer program, with manual forward and backward passes.

Each forward operation appends its backward pass to a tape. The backward pass of the network runs
the tape in reverse.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
from torch import nn

from transept.engines.kernels.attention import AttentionSpec, attend, attend_backward
from transept.engines.kernels.pointwise import Drop, add_norm, add_norm_backward, relu_backward
from transept.engines.program import Norm, Product, ResidualStream
from transept.model.attention import MultiHeadAttention
from transept.model.layers import FeedForward
from transept.shapes import Float, Tensor


@dataclass(frozen=True, slots=True)
class Matrix:
    """The weights of an `nn.Linear` for mixed precision, and their accumulated gradients."""

    value: Float[Tensor, "O I"]
    """A copy of the master weight, in the type of matrix products."""
    gradient: Float[Tensor, "O I"]
    """The accumulated gradient, in single precision."""
    bias: Float[Tensor, " O"] | None = None
    """A copy of the bias, in the type of matrix products."""
    d_bias: Float[Tensor, " O"] | None = None
    """In single precision. Accumulated where ∂/∂(x Wᵀ + b) is computed, not in `backward`."""

    @classmethod
    def of(cls, linear: nn.Linear, copies: "Copies") -> "Matrix":
        """The matrix of a module, and its bias if there is one."""
        weight, bias = linear.weight, cast(Tensor | None, linear.bias)
        if bias is None:
            return cls(copies.of([weight]), gradient_of(weight))
        return cls(copies.of([weight]), gradient_of(weight), copies.of([bias]), gradient_of(bias))

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x Wᵀ + b`."""
        return x @ self.value.T if self.bias is None else torch.addmm(self.bias, x, self.value.T)

    def add_bias_gradient(self, d_out: Float[Tensor, "N O"]) -> None:
        """Add Σ ∂/∂(x Wᵀ + b) to the gradient of the bias, if there is one."""
        if self.d_bias is not None:
            self.d_bias.add_(d_out.sum(0, dtype=self.d_bias.dtype))

    def backward(
        self, d_out: Float[Tensor, "N O"], x: Float[Tensor, "N I"], dx: Float[Tensor, "N I"] | None
    ) -> Float[Tensor, "N I"]:
        """Accumulate the gradient; return ∂/∂x, added to `dx` if given."""
        accumulate(self.gradient, d_out.T, x)
        return d_out @ self.value if dx is None else dx.addmm_(d_out, self.value)


def accumulate(
    into: Float[Tensor, "O I"], a: Float[Tensor, "O N"], b: Float[Tensor, "N I"]
) -> None:
    """Add the product a b to `into`, in the precision of `into`."""
    if a.dtype == into.dtype:
        into.addmm_(a, b)
    else:
        torch.addmm(into, a, b, out_dtype=into.dtype, out=into)


class Copies:
    """Copies of the weights in the type of matrix products."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._masters: list[Tensor] = []
        self._copies: list[Tensor] = []

    def of(self, masters: Sequence[Tensor]) -> Tensor:
        """A copy of these weights, stacked; `refresh` updates it."""
        copy = torch.cat([master.detach() for master in masters]).to(self.dtype)
        self._masters += [master.detach() for master in masters]
        self._copies += copy.split([len(master) for master in masters])
        return copy

    def refresh(self) -> None:
        """Update the copies after the optimizer changed the weights."""
        torch._foreach_copy_(self._copies, self._masters)


def gradient_of(parameter: Tensor) -> Tensor:
    """The tensor in which the gradient of a parameter is accumulated. It is never replaced."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


class Gradient(NamedTuple):
    """The gradient of a `ResidualStream`."""

    x: Float[Tensor, "N D"] | None
    """With pre-norm, the gradient of the residual stream. With post-norm, x and h are the same."""
    h: Float[Tensor, "N D"]


Backward = Callable[[Gradient], Gradient]
SublayerBackward = Callable[[Float[Tensor, "N I"], Float[Tensor, "N D"] | None], Tensor]
"""From ∂/∂inner to ∂/∂h. A second tensor, if given, is added to the result."""


class End(NamedTuple):
    """The end of a sub-layer: the `Product.matrix` of this engine."""

    matrix: Matrix
    drop: Drop
    backward: SublayerBackward


class SelfAttention:
    """The weights of multi-head self-attention."""

    def __init__(self, module: MultiHeadAttention, drop: Drop, copies: Copies) -> None:
        self.module, self.residual_drop = module, drop
        self.drop = drop._replace(p=module.dropout)
        self.w_qkv, self.w_o = Matrix.of(module.w_qkv, copies), Matrix.of(module.w_o, copies)

    def __call__(self, h: Float[Tensor, "N D"], spec: AttentionSpec) -> Product:
        """Equation (1), not yet multiplied by W_O."""
        split, drop = self.module.split, self.drop
        qkv = self.w_qkv(h)
        heads, log_total = attend(*split(qkv), spec, self.module.n_heads, drop)

        def backward(d_heads: Tensor, dx: Tensor | None) -> Tensor:
            d_qkv = torch.empty_like(qkv)
            attend_backward(
                *split(qkv), heads, log_total, d_heads, spec, drop, split(d_qkv)
            )  # fmt: skip
            self.w_qkv.add_bias_gradient(d_qkv)
            return self.w_qkv.backward(d_qkv, h, dx)

        return Product(heads, End(self.w_o, self.residual_drop, backward))


class SourceAttention:
    """The weights of multi-head attention to the source, whose keys and values are given."""

    def __init__(self, module: MultiHeadAttention, drop: Drop, copies: Copies) -> None:
        self.module, self.residual_drop = module, drop
        self.drop = drop._replace(p=module.dropout)
        (weight, bias), h_dk = module.w_q, module.h_dk
        gradient = gradient_of(module.w_qkv.weight)[:h_dk]
        self.w_q = Matrix(copies.of([weight]), gradient)
        if bias is not None:
            d_bias = gradient_of(module.w_qkv.bias)[:h_dk]
            self.w_q = Matrix(self.w_q.value, gradient, copies.of([bias]), d_bias)
        self.w_o = Matrix.of(module.w_o, copies)

    def __call__(
        self,
        h: Float[Tensor, "N D"],
        kv: Float[Tensor, "Ns kv"],
        d_kv: Float[Tensor, "Ns kv"],
        spec: AttentionSpec,
    ) -> Product:
        """Equation (1), not yet multiplied by W_O. The backward pass writes ∂/∂kv to `d_kv`."""
        q, drop = self.w_q(h), self.drop
        heads, log_total = attend(q, *self._split(kv), spec, self.module.n_heads, drop)

        def backward(d_heads: Tensor, dx: Tensor | None) -> Tensor:
            dq = torch.empty_like(q)
            attend_backward(
                q, *self._split(kv), heads, log_total, d_heads, spec, drop,
                (dq, *self._split(d_kv)),
            )  # fmt: skip
            self.w_q.add_bias_gradient(dq)
            return self.w_q.backward(dq, h, dx)

        return Product(heads, End(self.w_o, self.residual_drop, backward))

    def _split(self, kv: Tensor) -> tuple[Tensor, Tensor]:
        return kv[:, : self.module.h_dk], kv[:, self.module.h_dk :]


class PositionWise:
    """The weights of a feed-forward network, equation (2)."""

    def __init__(self, module: FeedForward, drop: Drop, copies: Copies) -> None:
        self.activation, self.residual_drop = module.activation, drop
        self.w_1, self.w_2 = Matrix.of(module.w_1, copies), Matrix.of(module.w_2, copies)

    def __call__(self, h: Float[Tensor, "N D"]) -> Product:
        """The activations, not yet multiplied by W_2."""
        assert self.w_1.bias is not None
        if self.activation is not torch.relu_:
            return self._swish(h)
        # One kernel for product and ReLU.
        inner = torch._addmm_activation(self.w_1.bias, h, self.w_1.value.T)

        def backward(d_inner: Tensor, dx: Tensor | None) -> Tensor:
            assert self.w_1.d_bias is not None
            relu_backward(d_inner, inner, self.w_1.d_bias)
            return self.w_1.backward(d_inner, h, dx)

        return Product(inner, End(self.w_2, self.residual_drop, backward))

    def _swish(self, h: Float[Tensor, "N D"]) -> Product:
        before = self.w_1(h)

        def backward(d_inner: Tensor, dx: Tensor | None) -> Tensor:
            d_before = torch.ops.aten.silu_backward(d_inner, before)
            self.w_1.add_bias_gradient(d_before)
            return self.w_1.backward(d_before, h, dx)

        inner = torch.nn.functional.silu(before)
        return Product(inner, End(self.w_2, self.residual_drop, backward))


class TrainedEncoderLayer(NamedTuple):
    """The weights of an encoder layer."""

    attention: SelfAttention
    feed_forward: PositionWise


class TrainedDecoderLayer(NamedTuple):
    """The weights of a decoder layer, and its keys and values of the source of a batch."""

    attention: SelfAttention
    source_attention: SourceAttention
    feed_forward: PositionWise
    kv: Float[Tensor, "Ns kv"]
    d_kv: Float[Tensor, "Ns kv"]


@dataclass(frozen=True, slots=True)
class TapedOperations:
    """The operations of a stack over one batch, and their backward passes."""

    spec: AttentionSpec
    across: AttentionSpec
    """For the attention to the source."""
    tape: list[Backward] = field(default_factory=list)

    def enter(self, x: Float[Tensor, "N D"], first: Norm | None, drop: Drop) -> ResidualStream:
        """The stream before the first sub-layer."""
        if first is None:
            return ResidualStream(x, x)
        none = drop._replace(p=0.0)
        normed, saved = add_norm(
            x, torch.zeros_like(x), first.weight, first.bias, first.epsilon, none
        )

        def backward(d: Gradient) -> Gradient:
            sums = [gradient_of(first.weight), gradient_of(first.bias)]
            dx, _ = add_norm_backward(d.h, saved, first.weight, none, sums, d.x)
            return Gradient(None, dx)

        self.tape.append(backward)
        return ResidualStream(x, normed)

    def self_attention(
        self, h: Float[Tensor, "N D"], layer: TrainedEncoderLayer | TrainedDecoderLayer
    ) -> Product:
        """Multi-head self-attention."""
        return layer.attention(h, self.spec)

    def source_attention(self, h: Float[Tensor, "N D"], layer: TrainedDecoderLayer) -> Product:
        """Attention to the source."""
        return layer.source_attention(h, layer.kv, layer.d_kv, self.across)

    def feed_forward(
        self, h: Float[Tensor, "N D"], layer: TrainedEncoderLayer | TrainedDecoderLayer
    ) -> Product:
        """Equation (2)."""
        return layer.feed_forward(h)

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """Add Dropout(y) to the stream and normalize, in one kernel."""
        matrix, drop, sublayer_backward = y.matrix
        weight, bias = norm.weight, norm.bias
        normed, saved = add_norm(stream.x, matrix(y.inner), weight, bias, norm.epsilon, drop)

        def backward(d: Gradient) -> Gradient:
            sums = [gradient_of(weight), gradient_of(bias)]
            if matrix.d_bias is not None:
                sums.append(matrix.d_bias)
            dx, dy = add_norm_backward(d.h, saved, weight, drop, sums, d.x)
            d_inner = matrix.backward(dy, y.inner, None)
            if norm.arrangement == "post":
                return Gradient(None, sublayer_backward(d_inner, dx))
            return Gradient(dx, sublayer_backward(d_inner, None))

        self.tape.append(backward)
        return norm.stream(saved.summed, normed)

    def backward(self, d_states: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """The gradient of the stack's input, from that of its output."""
        d = Gradient(None, d_states)
        while self.tape:
            d = self.tape.pop()(d)
        return d.h
