"""The layer program: Figure 1, written once for all engines.

`transept.model` computes the same layers as modules. Each engine implements the operations in the
form that is fastest on its device, and `tests/parity` compares them with the modules.

Each sub-layer reads h and returns y, which is added to the residual stream x:

    post-norm (the paper)     x = h = LayerNorm(x + y)
    pre-norm                  x = x + y, h = LayerNorm(x) with the norm of the next sub-layer

So in both forms a sub-layer is followed by one operation, `add_norm`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from torch import nn

from transept.model.layers import PreNorm, Residual
from transept.model.transformer import Decoder, Encoder
from transept.shapes import Float, Tensor

Layer = TypeVar("Layer")
LayerRead = TypeVar("LayerRead", contravariant=True)


class ResidualStream(NamedTuple):
    """The state between two sub-layers of a stack."""

    x: Float[Tensor, "N D"]
    """The residual stream."""
    h: Float[Tensor, "N D"]
    """The input of the next sub-layer; after the last one, the output of the stack."""


class Product(NamedTuple):
    """The output of a sub-layer, `inner` times `matrix`, not yet multiplied.

    An engine may fuse the product with the addition to the residual stream.
    """

    inner: Float[Tensor, "N I"]
    matrix: Any
    """The engine's form of W_O or W_2."""


Arrangement = Literal["post", "pre"]


@dataclass(frozen=True, slots=True)
class Norm:
    """A layer normalization and its arrangement.

    Its weights are read from the module once, because attribute access of `nn.Module` is slow.
    """

    shape: tuple[int, ...]
    weight: Float[Tensor, " D"]
    bias: Float[Tensor, " D"]
    epsilon: float
    arrangement: Arrangement

    @classmethod
    def of(cls, module: nn.LayerNorm, arrangement: Arrangement) -> "Norm":
        """The norm of a module."""
        return cls(module.normalized_shape, module.weight, module.bias, module.eps, arrangement)

    def stream(self, summed: Float[Tensor, "N D"], normed: Float[Tensor, "N D"]) -> ResidualStream:
        """The stream of x + y and LayerNorm(x + y)."""
        return ResidualStream(normed if self.arrangement == "post" else summed, normed)


@runtime_checkable
class Operations(Protocol[LayerRead]):
    """The operations of an encoder layer."""

    def self_attention(self, h: Float[Tensor, "N D"], layer: LayerRead) -> Product:
        """Multi-head attention of a sequence to itself, sections 3.2.1 and 3.2.2."""

    def feed_forward(self, h: Float[Tensor, "N D"], layer: LayerRead) -> Product:
        """The feed-forward network, equation (2)."""

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """Add y to the stream and normalize. `stream.x` may be overwritten."""


@runtime_checkable
class DecoderOperations(Operations[LayerRead], Protocol[LayerRead]):
    """The operations of a decoder layer."""

    def source_attention(self, h: Float[Tensor, "N D"], layer: LayerRead) -> Product:
        """Multi-head attention to the output of the encoder, section 3.2.3."""


Norms = Sequence[Norm]


def encoder_layer(
    stream: ResidualStream, layer: Layer, norms: Norms, ops: Operations[Layer]
) -> ResidualStream:
    """Self-attention and the feed-forward network, each with a residual connection."""
    attention, feed_forward = norms
    stream = ops.add_norm(stream, ops.self_attention(stream.h, layer), attention)
    return ops.add_norm(stream, ops.feed_forward(stream.h, layer), feed_forward)


def decoder_layer(
    stream: ResidualStream, layer: Layer, norms: Norms, ops: DecoderOperations[Layer]
) -> ResidualStream:
    """Self-attention, attention to the source, then the feed-forward network."""
    attention, source_attention, feed_forward = norms
    stream = ops.add_norm(stream, ops.self_attention(stream.h, layer), attention)
    stream = ops.add_norm(stream, ops.source_attention(stream.h, layer), source_attention)
    return ops.add_norm(stream, ops.feed_forward(stream.h, layer), feed_forward)


class StackNorms:
    """The layer normalizations of a stack: one per sub-layer, and with pre-norm one before them."""

    def __init__(self, stack: Encoder | Decoder) -> None:
        residuals = [cast(Residual, one) for layer in stack.stack for one in layer.residuals]
        modules = [residual.norm for residual in residuals]
        pre = isinstance(residuals[0], PreNorm)
        self.first = Norm.of(modules[0], "pre") if pre else None
        after = [*modules[1:], cast(nn.LayerNorm, stack.norm)] if pre else modules
        norms = [Norm.of(module, "pre" if pre else "post") for module in after]
        n = len(norms) // len(stack.layers)
        self.layers: list[Norms] = [norms[at : at + n] for at in range(0, len(norms), n)]
