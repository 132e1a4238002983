"""The decoder's attention to the source, whose keys and values do not change from step to step."""

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from transept.engines.native.cache import Seen, additive_mask
from transept.engines.native.matrices import MakeMatrix, PreparedMatrix, Transposed
from transept.engines.native.prepared import PreparedDecoderLayer
from transept.engines.program import Product
from transept.model.attention import MultiHeadAttention
from transept.model.transformer import Memory, Transformer
from transept.shapes import Float, Int, Tensor


@runtime_checkable
class LayerSource(Protocol):
    """The source as one layer attends to it."""

    def attend(self, h: Float[Tensor, "N D"], layer: PreparedDecoderLayer) -> Product:
        """`MultiHead(h, source, source)`."""


class Shared:
    """Attention as it is written: all rows of a sentence query the same keys and values."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        n_sentences, n_heads, _, d_k = seen.keys.shape
        self._shape = (n_sentences, -1, n_heads, d_k)
        self._scale = 1 / math.sqrt(d_k)

    def attend(self, h: Float[Tensor, "N D"], layer: PreparedDecoderLayer) -> Product:
        """`MultiHead(h, source, source)`, as it is written."""
        q = layer.source_q(h).view(self._shape).transpose(1, 2)
        return Product(self._seen.attend(q, self._scale), layer.source_out)


class Folded:
    """For one short sentence: its keys times W_Q and its values times W_O, once and for all.

    (x W_Q) Kᵀ = x (W_Q Kᵀ) and A (V W_O) = (A V) W_O. With fewer positions than a head is wide,
    these matrices are smaller than W_Q and W_O themselves, and attention is a softmax in between.
    """

    def __init__(self, attention: MultiHeadAttention, seen: Seen, make: MakeMatrix) -> None:
        self._n_heads, scale = attention.n_heads, math.sqrt(attention.d_k)
        k, v = seen.keys[0] / scale, seen.values[0]
        weight, b_q = attention.w_q
        w_q = weight.unflatten(0, (self._n_heads, -1))
        w_o = attention.w_o.weight.T.contiguous().unflatten(0, (self._n_heads, -1))
        bias = None
        if b_q is not None:
            bias = (k @ b_q.view(self._n_heads, -1, 1)).flatten()
        self._scores = make((k @ w_q).flatten(0, 1), bias)
        self._out = Transposed((v @ w_o).flatten(0, 1).T, attention.w_o.bias)

    def attend(self, h: Float[Tensor, "N D"], layer: PreparedDecoderLayer) -> Product:
        """`MultiHead(h, source, source)`; the matrices of the layer are part of these already."""
        scores = self._scores(h)
        weights = scores.view(h.shape[0], self._n_heads, -1).softmax(dim=2)
        return Product(weights.view(scores.shape), self._out)


class SourceCache:
    """The source of all sentences, as each layer sees it."""

    def __init__(self, model: Transformer, memory: Memory, kv: Sequence[PreparedMatrix]) -> None:
        self._attentions = [layer.source_attention for layer in model.decoder.stack]
        hidden = memory.layout.segments == 0
        mask = additive_mask(hidden, memory.states)[:, None, None] if hidden.any() else None
        self._seen = [
            Seen(*_heads(*parts, memory), mask) for parts in zip(self._attentions, kv, strict=True)
        ]
        self._make: MakeMatrix | None = None
        self._is_folded = False
        self._layers: Sequence[LayerSource] = []
        self._share()

    def keep(self, sentences: Int[Tensor, " B"]) -> None:
        """Forget the other sentences."""
        mask = self._seen[0].mask
        mask = None if mask is None else mask[sentences]
        self._seen = [Seen(k[sentences], v[sentences], mask) for k, v, _ in self._seen]
        self._share()

    def layers(self, make: MakeMatrix) -> Sequence[LayerSource]:
        """Each layer's attention; `make` makes matrices for as many rows as there are now."""
        if make is not self._make:
            self._share(make)  # a search begins with one row: let it first find its width
        elif not self._is_folded and self._is_one_short_sentence():
            parts = zip(self._attentions, self._seen, strict=True)
            self._layers = [Folded(attention, seen, make) for attention, seen in parts]
            self._is_folded = True
        return self._layers

    def _share(self, make: MakeMatrix | None = None) -> None:
        self._layers = [Shared(seen) for seen in self._seen]
        self._make, self._is_folded = make, False

    def _is_one_short_sentence(self) -> bool:
        n_sentences, _, length, d_k = self._seen[0].keys.shape
        return n_sentences == 1 and length <= d_k and self._seen[0].mask is None


def _heads(
    attention: MultiHeadAttention, kv: PreparedMatrix, memory: Memory
) -> tuple[Float[Tensor, "B H S Dk"], Float[Tensor, "B H S Dv"]]:
    """Keys and values of the source, each head's together."""
    k, v = (
        part.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2).contiguous()
        for part in memory.layout.apart(kv(memory.states)).tensor_split([attention.h_dk], dim=-1)
    )
    return k, v
