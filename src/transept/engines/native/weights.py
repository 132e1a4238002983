"""The weights of a model for inference, in memory layouts that are fast on the device.

A step multiplies few rows with large matrices, so the time of a product depends on the memory
layout of the matrix. The weights are copied once, and again when a weight changes.
"""

import math
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional as F

from transept.engines.program import StackNorms
from transept.model.attention import MultiHeadAttention, require_equation_1
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.runtime.products import Library, convenient, fastest_library
from transept.shapes import Float, Int, Tensor

PACKED_ROWS = 512
"""The number of rows for which MKL packs a matrix. With it, other numbers are fast as well."""


@runtime_checkable
class PreparedMatrix(Protocol):
    """A linear transformation in a layout for decoding."""

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`, the residual sum. `y` may be overwritten."""


class Unchanged:
    """Output by input, as in the model: for a single row, and for a GPU."""

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
    """Input by output: a third faster on a CPU with 2 to 128 rows."""

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


class Prepacked:
    """In a library's own layout."""

    def __init__(self, product: Callable[[Tensor], Tensor]) -> None:
        self._product = product

    @classmethod
    def by_onednn(
        cls, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None
    ) -> "Prepacked":
        """On ARM, large matrices are another 10 % faster, with 4 rows a third.

        On x86_64, some rows may be added, which is worthwhile: see `convenient`.
        """
        packed = torch.ops.mkldnn._reorder_linear_weight(weight)
        product = torch.ops.mkldnn._linear_pointwise.default
        more = weight.new_zeros(1, weight.shape[1])

        def rounded(x: Tensor) -> Tensor:
            n_rows = x.shape[0]
            if n_more := convenient(n_rows) - n_rows:
                x = torch.cat([x, more.expand(n_more, -1)])
            y: Tensor = product(x, packed, bias, "none", [], "")
            return y[:n_rows] if n_more else y

        return cls(rounded)

    @classmethod
    def by_mkl(cls, weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> "Prepacked":
        """With 4 rows half again as fast, with 32 a third, with 300 a tenth."""
        packed = torch.ops.mkl._mkl_reorder_linear_weight(weight, PACKED_ROWS)
        product = torch.ops.mkl._mkl_linear.default
        # Unless the last argument is the number of rows, torch takes the original weight.
        return cls(lambda x: product(x, packed, weight, bias, x.shape[0]))

    def __call__(self, x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`x W + b`."""
        return self._product(x)

    def into(self, out: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> None:
        """Write `x W + b` to `out`."""
        out.copy_(self(x))

    def onto(self, y: Float[Tensor, "N O"], x: Float[Tensor, "N I"]) -> Float[Tensor, "N O"]:
        """`y + x W + b`."""
        return self(x).add_(y)


MakeMatrix = Callable[[Tensor, Tensor | None], PreparedMatrix]


class Packing(NamedTuple):
    """The layout of large matrices."""

    least: int
    """From this number of elements on it is faster, despite a higher overhead."""
    make: MakeMatrix


PACKINGS: dict[Library, Packing] = {
    "MKL": Packing(2**17, Prepacked.by_mkl),
    "oneDNN": Packing(2**16, Prepacked.by_onednn),
}
if torch.backends.mkldnn.is_available():
    PACKINGS["other"] = Packing(2**19, Prepacked.by_onednn)


@runtime_checkable
class ProductPlan(Protocol):
    """How to compute the products of each part of a network. Equal plans are equal objects."""

    def maker(self, part: str) -> MakeMatrix:
        """A function that prepares a matrix of `encoder`, `decoder` or `projection`."""


def packed_for_cpu(
    weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None
) -> PreparedMatrix:
    """A copy of the weight in the layout that is fastest on a CPU, for several rows."""
    packing = PACKINGS.get(fastest_library())
    if packing and weight.dtype == torch.float32 and weight.numel() >= packing.least:
        return packing.make(weight, bias)
    return Transposed(weight, bias)


def for_one_row(weight: Float[Tensor, "O I"], bias: Float[Tensor, " O"] | None) -> PreparedMatrix:
    """The weight in the layout that is fastest for one row. Only MKL profits from a copy."""
    with_mkl = weight.is_cpu and torch.backends.mkl.is_available()
    return Transposed(weight, bias) if with_mkl else Unchanged(weight, bias)


class PreparedLayer:
    """The matrices of self-attention and feed-forward network of a layer.

    The heads of Q, K and V in self-attention have the same width: if d_k differs from d_v, they are
    padded with zeros.
    """

    def __init__(self, layer: EncoderLayer | DecoderLayer, make: MakeMatrix) -> None:
        attention, feed = layer.self_attention, layer.feed_forward
        self.n_heads, self.scale = attention.n_heads, 1 / math.sqrt(attention.d_k)
        self.qkv = make(*_padded_qkv(attention))
        self.attention_out = make(_padded_out(attention), attention.w_o.bias)
        self.inner = make(feed.w_1.weight, feed.w_1.bias)
        self.outer = make(feed.w_2.weight, feed.w_2.bias)
        self.activation = feed.activation


class PreparedDecoderLayer(PreparedLayer):
    """The matrices of a decoder layer, including those of attention to the source."""

    def __init__(self, layer: DecoderLayer, make: MakeMatrix, make_source: MakeMatrix) -> None:
        super().__init__(layer, make)
        source = layer.source_attention
        self.source_q = make_source(*source.w_q)
        self.source_out = make_source(source.w_o.weight, source.w_o.bias)


def _padded_qkv(attention: MultiHeadAttention) -> tuple[Tensor, Tensor | None]:
    """`w_qkv` and its bias, padded so that all heads have the same width."""
    weight, bias = attention.w_qkv.weight, attention.w_qkv.bias
    if attention.d_k == attention.d_v:
        return weight, bias

    def padded(x: Tensor) -> Tensor:
        parts = (part.T.unflatten(0, (attention.n_heads, -1)) for part in attention.split(x.T))
        return torch.cat([_pad_heads(part, 1, attention).flatten(0, 1) for part in parts])

    return padded(weight), None if bias is None else padded(bias[:, None])[:, 0]


def _padded_out(attention: MultiHeadAttention) -> Tensor:
    """`w_o`, for heads of the same width as in `_padded_qkv`."""
    weight = attention.w_o.weight
    if attention.d_k == attention.d_v:
        return weight
    return _pad_heads(weight.unflatten(1, (attention.n_heads, -1)), 2, attention).flatten(1)


def _pad_heads(x: Tensor, axis: int, attention: MultiHeadAttention) -> Tensor:
    """Pad each head with zeros to the larger of d_k and d_v."""
    shape = list(x.shape)
    shape[axis] = max(attention.d_k, attention.d_v) - shape[axis]
    return torch.cat([x, x.new_zeros(shape)], dim=axis)


class PreparedDecoder:
    """The decoder's layers, and the projection to logits. The logit of padding is −∞.

    With a plan, `make` prepares the matrices that are not in it: those of attention to the source,
    and of a projection to some tokens only.

    The unit of the logits is `nats`. With copied weights it is log 2, so that summing probabilities
    takes exp2, which needs three quarters of the time of exp.
    """

    def __init__(
        self,
        layers: list[DecoderLayer],
        projection: nn.Linear,
        pad_id: int,
        make: MakeMatrix,
        plan: ProductPlan | None = None,
    ) -> None:
        self.make = make
        make_own = make if plan is None else plan.maker("decoder")
        self.layers = [PreparedDecoderLayer(layer, make_own, make) for layer in layers]
        self.nats = 1.0 if make is for_one_row else math.log(2)
        self._weight: Tensor = projection.weight
        self._bias: Tensor | None = projection.bias
        self._pad_id = pad_id
        make_all = make if plan is None else plan.maker("projection")
        self.projection = make_all(*self._scaled(self._weight, self._bias))

    def logits(self, y: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
        """The logits of all tokens."""
        logits = self.projection(y)
        logits[:, self._pad_id] = -torch.inf
        return logits

    def projection_to(self, tokens: Int[Tensor, " listed"]) -> PreparedMatrix:
        """The projection to some tokens of the vocabulary."""
        bias = None if self._bias is None else self._bias[tokens]
        return self.make(*self._scaled(self._weight[tokens], bias))

    def _scaled(self, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if self.nats == 1.0:
            return weight, bias
        return weight / self.nats, None if bias is None else bias / self.nats


class Prepared:
    """The weights of a model, prepared for inference, in single precision or by a plan."""

    def __init__(self, model: Transformer, stamp: object, plan: ProductPlan | None = None) -> None:
        require_equation_1(model, "decoding with a key/value cache")
        self.stamp = stamp
        self.embedding = model.target_embedding
        layers = model.decoder.stack
        self._parts = layers, model.projection, model.config.pad_id
        self.encoder_norms = StackNorms(model.encoder)
        self.decoder_norms = StackNorms(model.decoder)
        self._plan = plan
        self._for_one_row: PreparedDecoder | None = None
        self._packed: PreparedDecoder | None = None
        self._encoder = model.encoder.stack
        self._encoder_layers: list[PreparedLayer] = []
        self._source_attentions = [layer.source_attention for layer in layers]
        self._source_kv: list[PreparedMatrix] = []
        self._positions = model.target_positions
        self._vectors: dict[int, Tensor] = {}

    def encoder_layers(self) -> list[PreparedLayer]:
        """The layers of the encoder, for many rows on a CPU."""
        with _preparing:
            if not self._encoder_layers:
                layers = [PreparedLayer(layer, self._make_encoder()) for layer in self._encoder]
                self._encoder_layers = layers
            return self._encoder_layers

    def decoder(self, n_rows: int) -> PreparedDecoder:
        """The decoder, in the layout that is fastest for this number of rows."""
        with _preparing:
            if (n_rows == 1 and self._plan is None) or not self.embedding.weight.is_cpu:
                if self._for_one_row is None:
                    self._for_one_row = PreparedDecoder(*self._parts, for_one_row)
                return self._for_one_row
            if self._packed is None:
                make = packed_for_cpu if self._plan is None else self._plan.maker("source")
                self._packed = PreparedDecoder(*self._parts, make, self._plan)
            return self._packed

    def source_kv(self) -> list[PreparedMatrix]:
        """The projection to keys and values of the source, for each layer of the decoder."""
        with _preparing:
            if not self._source_kv:
                make = self._make_encoder() if self.embedding.weight.is_cpu else Unchanged
                self._source_kv = [make(*one.w_kv) for one in self._source_attentions]
            return self._source_kv

    def _make_encoder(self) -> MakeMatrix:
        return packed_for_cpu if self._plan is None else self._plan.maker("encoder")

    def position(self, index: int) -> Float[Tensor, "1 D"]:
        """The positional encoding of a position in the output."""
        if index not in self._vectors:
            self._positions.reach(index + 1)
            here = torch.full((1,), index, device=self.embedding.weight.device)
            self._vectors[index] = self._positions.at(here)
        return self._vectors[index]


_prepared: WeakKeyDictionary[Transformer, dict[ProductPlan | None, Prepared]]
_prepared = WeakKeyDictionary()
_preparing = Lock()
"""Threads that decode in parallel start at the same time and share the copies."""


def prepare(model: Transformer, plan: ProductPlan | None = None) -> Prepared:
    """The prepared weights of a model, cached until a weight changes."""
    stamp = _stamp(model)
    with _preparing:
        by_plan = _prepared.setdefault(model, {})
        known = by_plan.get(plan)
        if known is None or known.stamp != stamp:
            known = by_plan[plan] = Prepared(model, stamp, plan)
        return known


def _stamp(model: Transformer) -> object:
    """Changes whenever a weight is replaced, moved or written (except through `.data`)."""
    parts = [model.encoder, model.decoder, model.target_positions, model.projection]
    weights = [weight for part in parts for weight in part.parameters()]
    return [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in weights]
