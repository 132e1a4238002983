"""A model's weights for inference, laid out as the device likes them.

A step's matrices are large and its rows are few, so how a matrix is laid out in memory decides how
long a product takes. The copies are made once, and again when a weight changes.
"""

import math
from collections.abc import Callable
from threading import Lock
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional as F

from transept.engines.program import StackNorms
from transept.model.attention import MultiHeadAttention, require_equation_1
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Float, Int, Tensor

LARGE = 2**19
"""A matrix of so many numbers is quicker in oneDNN's own layout, in spite of a slower start."""


@runtime_checkable
class PreparedMatrix(Protocol):
    """A linear transformation, laid out for decoding."""

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`, the residual sum. `y` may be used up."""


class AsItLies:
    """Out by in, as the model has it: for a single row, and for a GPU."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        return F.linear(x, self.weight, self.bias)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        if self.bias is None:
            torch.mm(x, self.weight.T, out=out)
        else:
            torch.addmm(self.bias, x, self.weight.T, out=out)

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return y + F.linear(x, self.weight, self.bias)


class Transposed:
    """In by out: a third quicker on a CPU with 2 to 128 rows."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self.weight, self.bias = weight.T.contiguous(), bias

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        if self.bias is None:
            return torch.mm(x, self.weight)
        return torch.addmm(self.bias, x, self.weight)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        if self.bias is None:
            torch.mm(x, self.weight, out=out)
        else:
            torch.addmm(self.bias, x, self.weight, out=out)

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        if self.bias is not None:
            y.add_(self.bias)
        return y.addmm_(x, self.weight)


class Reordered:
    """In oneDNN's own layout: large matrices gain another tenth, at 4 rows a third."""

    def __init__(self, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> None:
        self.weight, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight), bias
        self._product = torch.ops.mkldnn._linear_pointwise.default

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        product: Tensor = self._product(x, self.weight, self.bias, "none", [], "")
        return product

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        out.copy_(self(x))

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return self(x).add_(y)


MakeMatrix = Callable[[Tensor, Tensor | None], PreparedMatrix]


def for_several_rows(
    weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None
) -> PreparedMatrix:
    """A copy of the weight, in the layout that is quickest on a CPU."""
    can_reorder = weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()
    if weight.numel() >= LARGE and can_reorder:
        return Reordered(weight, bias)
    return Transposed(weight, bias)


class PreparedLayer:
    """The matrices of a layer; all that an encoder layer needs but its norms.

    The heads of Q, K and V in self-attention are all equally wide: where d_k is not d_v, zeros
    make up for it.
    """

    def __init__(self, layer: EncoderLayer | DecoderLayer, make: MakeMatrix) -> None:
        attention, feed = layer.self_attention, layer.feed_forward
        self.n_heads, self.scale = attention.n_heads, 1 / math.sqrt(attention.d_k)
        self.qkv = make(*_even_qkv(attention))
        self.attention_out = make(_even_out(attention), attention.w_o.bias)
        self.inner = make(feed.w_1.weight, feed.w_1.bias)
        self.outer = make(feed.w_2.weight, feed.w_2.bias)
        self.activation = feed.activation


class PreparedDecoderLayer(PreparedLayer):
    """One decoder layer, which attends to the source too."""

    def __init__(self, layer: DecoderLayer, make: MakeMatrix) -> None:
        super().__init__(layer, make)
        source = layer.source_attention
        self.source_q = make(*source.w_q)
        self.source_out = make(source.w_o.weight, source.w_o.bias)


def _even_qkv(attention: MultiHeadAttention) -> tuple[Tensor, Tensor | None]:
    """`w_qkv` and its bias, for heads that are all equally wide."""
    weight, bias = attention.w_qkv.weight, attention.w_qkv.bias
    if attention.d_k == attention.d_v:
        return weight, bias

    def even(x: Tensor) -> Tensor:
        parts = (part.T.unflatten(0, (attention.n_heads, -1)) for part in attention.split(x.T))
        return torch.cat([_widened(part, 1, attention).flatten(0, 1) for part in parts])

    return even(weight), None if bias is None else even(bias[:, None])[:, 0]


def _even_out(attention: MultiHeadAttention) -> Tensor:
    """`w_o`, for heads that are as wide as those of `_even_qkv`."""
    weight = attention.w_o.weight
    if attention.d_k == attention.d_v:
        return weight
    return _widened(weight.unflatten(1, (attention.n_heads, -1)), 2, attention).flatten(1)


def _widened(x: Tensor, axis: int, attention: MultiHeadAttention) -> Tensor:
    """Zeros behind each head, up to the wider of d_k and d_v."""
    shape = list(x.shape)
    shape[axis] = max(attention.d_k, attention.d_v) - shape[axis]
    return torch.cat([x, x.new_zeros(shape)], dim=axis)


class PreparedDecoder:
    """The decoder's layers and the projection to logits, that of padding being −∞.

    A unit of the logits is worth `nats`. With copies of the weights it is log 2, so that their
    sum takes powers of two, which are had in three quarters of exp's time.
    """

    def __init__(
        self,
        layers: list[DecoderLayer],
        projection: nn.Linear,
        pad_id: int,
        make: MakeMatrix,
    ) -> None:
        self.make = make
        self.layers = [PreparedDecoderLayer(layer, make) for layer in layers]
        self.nats = 1.0 if make is AsItLies else math.log(2)
        self._weight: Tensor = projection.weight
        self._bias: Tensor | None = projection.bias
        bias = self._weight.new_zeros(len(self._weight)) if self._bias is None else self._bias
        padding = torch.arange(len(bias), device=bias.device) == pad_id
        self.projection = self._projection(self._weight, bias.masked_fill(padding, -torch.inf))

    def projection_to(self, tokens: Int[Tensor, " listed"]) -> PreparedMatrix:
        """The projection to some of the vocabulary."""
        bias = None if self._bias is None else self._bias[tokens]
        return self._projection(self._weight[tokens], bias)

    def _projection(self, weight: Tensor, bias: Tensor | None) -> PreparedMatrix:
        if self.nats != 1.0:
            weight, bias = weight / self.nats, None if bias is None else bias / self.nats
        return self.make(weight, bias)


class Prepared:
    """All that decoding needs of a model."""

    def __init__(self, model: Transformer, stamp: object) -> None:
        require_equation_1(model, "decoding with kept keys and values")
        self.stamp = stamp
        self.embedding = model.target_embedding
        layers = model.decoder.stack
        self._parts = layers, model.projection, model.config.pad_id
        self.encoder_norms = StackNorms(model.encoder)
        self.decoder_norms = StackNorms(model.decoder)
        self._as_it_lies = PreparedDecoder(*self._parts, AsItLies)
        self._for_several_rows: PreparedDecoder | None = None
        self._encoder = model.encoder.stack
        self._encoder_layers: list[PreparedLayer] = []
        self._source_attentions = [layer.source_attention for layer in layers]
        self._source_kv: list[PreparedMatrix] = []
        self._positions = model.target_positions
        self._vectors: dict[int, Tensor] = {}

    def encoder_layers(self) -> list[PreparedLayer]:
        """The encoder, for many rows on a CPU."""
        with _preparing:
            if not self._encoder_layers:
                layers = [PreparedLayer(layer, for_several_rows) for layer in self._encoder]
                self._encoder_layers = layers
            return self._encoder_layers

    def decoder(self, n_rows: int) -> PreparedDecoder:
        """The decoder, in the form that is quickest for so many rows."""
        if n_rows == 1 or not self.embedding.weight.is_cpu:
            return self._as_it_lies
        with _preparing:
            if self._for_several_rows is None:
                self._for_several_rows = PreparedDecoder(*self._parts, for_several_rows)
            return self._for_several_rows

    def source_kv(self) -> list[PreparedMatrix]:
        """What makes keys and values of the source, for each of the decoder's layers."""
        with _preparing:
            if not self._source_kv:
                make = for_several_rows if self.embedding.weight.is_cpu else AsItLies
                self._source_kv = [make(*one.w_kv) for one in self._source_attentions]
            return self._source_kv

    def position(self, place: int) -> Float[Tensor, "1 D"]:
        """The vector of a place in the output."""
        if place not in self._vectors:
            self._positions.reach(place + 1)
            here = torch.full((1,), place, device=self.embedding.weight.device)
            self._vectors[place] = self._positions.at(here)
        return self._vectors[place]


_prepared: WeakKeyDictionary[Transformer, Prepared] = WeakKeyDictionary()
_preparing = Lock()
"""Threads that decode side by side begin together, and all need the same copies."""


def prepare(model: Transformer) -> Prepared:
    """The model, prepared; the same one again as long as no weight has changed."""
    stamp = _stamp(model)
    with _preparing:
        known = _prepared.get(model)
        if known is None or known.stamp != stamp:
            known = _prepared[model] = Prepared(model, stamp)
        return known


def _stamp(model: Transformer) -> object:
    """Another one whenever a weight is replaced, moved or written to (but not through `.data`)."""
    parts = [model.encoder, model.decoder, model.target_positions, model.projection]
    weights = [weight for part in parts for weight in part.parameters()]
    return [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in weights]
