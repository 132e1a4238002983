"""Key/value caches of the decoder, for the outputs so far and for the source.

The cache of the outputs grows with each step and is shared by the rows of a beam. The cache of the
source does not change.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch.nn import functional as F

from transept.engines.native.weights import (
    MakeMatrix,
    PreparedDecoderLayer,
    PreparedMatrix,
    Transposed,
)
from transept.engines.program import Product
from transept.model.attention import MultiHeadAttention
from transept.model.config import ModelConfig
from transept.model.transformer import Memory, Transformer
from transept.runtime.products import fastest_library
from transept.shapes import Bool, Float, Int, Tensor

INITIAL_SLOTS = 32
"""The initial capacity of a sentence, in tokens."""


def attend(
    q: Float[Tensor, "B H W Dk"],
    k: Float[Tensor, "B H slots Dk"],
    v: Float[Tensor, "B H slots Dv"],
    mask: Float[Tensor, "B 1 _ slots"] | None,
    scale: float,
) -> Float[Tensor, "B H W Dv"]:
    """Equation (1) for all heads, plus a mask: 0 where a row may attend, else −∞.

    On Intel's processors, MKL is slow in multiplying many small matrices by transposed ones. So the
    smaller matrix is transposed in memory first: for 32 sentences and beam 4, equation (1) takes
    half of the time.
    """
    if not q.is_cpu or fastest_library() != "MKL" or q.shape[0] == 1:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    if q.shape[2] < k.shape[2]:
        scores = (k @ q.transpose(2, 3).contiguous()).transpose(2, 3)
    else:
        scores = q @ k.transpose(2, 3).contiguous()
    scores = scores.mul_(scale) if mask is None else torch.add(mask, scores, alpha=scale)
    return scores.softmax(dim=3) @ v


class KeyValues(NamedTuple):
    """The keys and values of a layer, and a mask: 0 where a row may attend, else −∞."""

    keys: Float[Tensor, "B H slots Dk"]
    values: Float[Tensor, "B H slots Dv"]
    mask: Float[Tensor, "B 1 W slots"] | None

    def attend(self, q: Float[Tensor, "B H W Dk"], scale: float) -> Float[Tensor, "N HDv"]:
        """Equation (1). The rows of a sentence are queries to the same keys."""
        out = attend(q, self.keys, self.values, self.mask, scale)
        return out.transpose(1, 2).reshape(q.shape[0] * q.shape[2], -1)


class ProjectionBuffer(NamedTuple):
    """A buffer for the queries, keys and values of the rows, and views of it."""

    qkv: Float[Tensor, "N qkv"]
    q: Float[Tensor, "B H W Dh"]
    kv: Float[Tensor, "2 B H W Dh"]


class LayerCache(NamedTuple):
    """The cache of one layer in one step."""

    buffer: ProjectionBuffer
    new: Float[Tensor, "2 B H W Dh"]
    """The slots for the rows' new keys and values."""
    past: KeyValues
    """All keys and values, including the new ones."""


class Kept(NamedTuple):
    """The sentences of a cache that are kept. Only those that change their place are copied."""

    sentences: Int[Tensor, " B"]
    places: Int[Tensor, " M"]
    """The new places of sentences that are moved."""
    moved: Int[Tensor, " M"]

    @classmethod
    def of(cls, sentences: Int[Tensor, " B"]) -> "Kept":
        """Keep these sentences, in this order."""
        places = (sentences != torch.arange(len(sentences), device=sentences.device)).nonzero()
        return cls(sentences, places.squeeze(1), sentences[places.squeeze(1)])

    def __call__(self, x: Float[Tensor, "*shape"], axis: int) -> Float[Tensor, "*kept"]:
        """The slices of x along an axis. `x` may be overwritten."""
        n_kept = len(self.sentences)
        if n_kept > x.shape[axis] or (self.moved < n_kept).any():
            return x.index_select(axis, self.sentences)
        x.index_copy_(axis, self.places, x.index_select(axis, self.moved))
        return x.narrow(axis, 0, n_kept)


class OutputCache:
    """The keys and values of the outputs so far, for each layer.

    The rows of a sentence share its slots. Each new token takes its own slot, and a mask marks the
    slots of each row's past. So when a beam branches, two rows see the same slots and no key is
    copied. A single row needs no mask: all slots are its past. When the slots are used up, those
    that no row sees any more are freed.
    """

    def __init__(self, config: ModelConfig, n_layers: int, memory: Memory) -> None:
        self.n_sentences = len(memory.layout.segments)
        self.width = 1
        self._window = config.decoder_window
        self._n_slots = 0
        heads = (config.n_heads, INITIAL_SLOTS, max(config.d_k, config.d_v))
        self._kv: Float[Tensor, "Y 2 B H slots Dh"]
        self._kv = memory.states.new_empty(n_layers, 2, self.n_sentences, *heads)
        self._buffer = self._new_buffer()
        self._mask: Float[Tensor, "N slots"] | None = None
        """0 for the slots of a row's past, else −∞. None: all slots are its past."""
        if self._window is not None:
            self._mask = memory.states.new_empty(self.n_sentences, 0)
        self._own: Float[Tensor, "N W"] = memory.states.new_zeros(self.n_sentences, 1)
        """Columns that a step adds to the mask: of its sentence's new slots, a row sees its own."""

    def append(self) -> list[LayerCache]:
        """Add a slot for each row and return the cache of each layer."""
        if self._n_slots + self.width > self._kv.shape[4]:
            self._compact()
        start, end = self._n_slots, self._n_slots + self.width
        self._n_slots = end
        mask = self._visible(end)
        new = self._kv.narrow(4, start, self.width).unbind(0)
        # Create the views of all layers at once: one by one takes as long as a matrix product.
        kv = self._kv.narrow(4, 0, end).flatten(0, 1).unbind(0)
        parts = zip(new, kv[::2], kv[1::2], strict=True)
        return [LayerCache(self._buffer, own, KeyValues(k, v, mask)) for own, k, v in parts]

    def _visible(self, end: int) -> Float[Tensor, "B 1 W slots"] | None:
        """The mask after adding a slot per row. None: all slots are visible."""
        if self._mask is None:
            return None
        self._mask = torch.cat([self._mask, self._own], dim=1)
        if self._window is not None:
            back = (self._mask == 0).flip(1).cumsum(1).flip(1)
            self._mask = self._mask.masked_fill(back > self._window, -torch.inf)
        return self._mask.view(self.n_sentences, 1, self.width, end)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Continue with these rows. The number of rows per sentence must not change."""
        if self._mask is not None:
            self._mask = self._mask.index_select(0, rows)

    def keep(self, sentences: Int[Tensor, " B"], width: int) -> None:
        """Keep only these sentences, with `width` rows each."""
        if self._mask is None and width > 1:
            self._mask = self._kv.new_zeros(self.n_sentences, self._n_slots)
        if len(sentences) < self.n_sentences:
            self._kv = Kept.of(sentences)(self._kv, 2)
        self.n_sentences, self.width = len(sentences), width
        self._buffer = self._new_buffer()
        others = ~torch.eye(width, dtype=torch.bool, device=sentences.device)
        self._own = additive_mask(others, self._kv).repeat(self.n_sentences, 1)

    def _new_buffer(self) -> ProjectionBuffer:
        """A buffer for the current rows. All layers use the same one."""
        n_heads, d_head = self._kv.shape[3], self._kv.shape[5]
        qkv = self._kv.new_empty(self.n_sentences, self.width, 3, n_heads, d_head)
        heads = qkv.permute(2, 0, 3, 1, 4)
        return ProjectionBuffer(qkv.flatten(0, 1).flatten(1), heads[0], heads[1:])

    def _compact(self) -> None:
        """Free the slots that no row sees; set the capacity to twice the remaining ones."""
        if self._mask is None:
            mask = self._kv.new_zeros(self.n_sentences, self.width, self._n_slots)
        else:
            mask = self._mask.view(self.n_sentences, self.width, -1)
        used = (mask == 0).any(dim=1)
        self._n_slots = int(used.sum(dim=1).max())
        # Used slots first, in order. In sentences with fewer of them, no row sees the others.
        order = used.byte().argsort(dim=1, descending=True, stable=True)[:, : self._n_slots]
        n_slots = max(INITIAL_SLOTS, 2 * self._n_slots + self.width)
        self._kv = _moved(self._kv, order, n_slots)
        if self._mask is not None:
            self._mask = mask.gather(2, order[:, None].expand(-1, self.width, -1)).flatten(0, 1)


def _moved(
    x: Float[Tensor, "Y 2 B H slots Dh"], order: Int[Tensor, "B M"], n_slots: int
) -> Float[Tensor, "Y 2 B H _ Dh"]:
    """The slots in this order, with capacity for `n_slots`."""
    *each, n_old, width = x.shape
    new = x.new_empty(*each, n_slots, width)
    first = torch.arange(0, x[..., 0].numel(), n_old, device=x.device)
    taken = first.view(*each, 1) + order[:, None]
    moved = x.flatten(0, 4).index_select(0, taken.flatten())
    new[..., : order.shape[1], :] = moved.view(*taken.shape, width)
    return new


def additive_mask(hidden: Bool[Tensor, "*shape"], like: Tensor) -> Float[Tensor, "*shape"]:
    """−∞ where `hidden` is true, else 0."""
    return like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)


@runtime_checkable
class LayerSource(Protocol):
    """Attention of one layer to the source."""

    def attend(self, h: Float[Tensor, "N D"], layer: PreparedDecoderLayer) -> Product:
        """`MultiHead(h, source, source)`."""


class Shared:
    """Plain attention: all rows of a sentence query the same keys and values."""

    def __init__(self, keys_values: KeyValues) -> None:
        self._keys_values = keys_values
        n_sentences, n_heads, _, d_k = keys_values.keys.shape
        self._shape = (n_sentences, -1, n_heads, d_k)
        self._scale = 1 / math.sqrt(d_k)

    def attend(self, h: Float[Tensor, "N D"], layer: PreparedDecoderLayer) -> Product:
        """`MultiHead(h, source, source)`."""
        q = layer.source_q(h).view(self._shape).transpose(1, 2)
        return Product(self._keys_values.attend(q, self._scale), layer.source_out)


class Precomputed:
    """Attention to one short sentence, with precomputed products of keys, values and weights.

    (x W_Q) Kᵀ = x (W_Q Kᵀ) and A (V W_O) = (A V) W_O. If the sentence has fewer positions than d_k,
    W_Q Kᵀ and V W_O are smaller than W_Q and W_O, and attention is a softmax between two products.
    """

    def __init__(
        self, attention: MultiHeadAttention, keys_values: KeyValues, make: MakeMatrix
    ) -> None:
        self._n_heads, scale = attention.n_heads, math.sqrt(attention.d_k)
        k, v = keys_values.keys[0] / scale, keys_values.values[0]
        weight, b_q = attention.w_q
        w_q = weight.unflatten(0, (self._n_heads, -1))
        w_o = attention.w_o.weight.T.contiguous().unflatten(0, (self._n_heads, -1))
        bias = None
        if b_q is not None:
            bias = (k @ b_q.view(self._n_heads, -1, 1)).flatten()
        self._scores = make((k @ w_q).flatten(0, 1), bias)
        self._out = Transposed((v @ w_o).flatten(0, 1).T, attention.w_o.bias)

    def attend(self, h: Float[Tensor, "N D"], layer: PreparedDecoderLayer) -> Product:
        """`MultiHead(h, source, source)`. The layer's matrices are not used."""
        scores = self._scores(h)
        weights = scores.view(h.shape[0], self._n_heads, -1).softmax(dim=2)
        return Product(weights.view(scores.shape), self._out)


class SourceCache:
    """The keys and values of the source, for all sentences and layers."""

    def __init__(self, model: Transformer, memory: Memory, kv: Sequence[PreparedMatrix]) -> None:
        self._attentions = [layer.source_attention for layer in model.decoder.stack]
        hidden = memory.layout.segments == 0
        mask = additive_mask(hidden, memory.states)[:, None, None] if hidden.any() else None
        self._keys_values = [
            KeyValues(*_heads(*parts, memory), mask)
            for parts in zip(self._attentions, kv, strict=True)
        ]
        self._make: MakeMatrix | None = None
        self._is_precomputed = False
        self._layers: Sequence[LayerSource] = []
        self._share()

    def keep(self, sentences: Int[Tensor, " B"]) -> None:
        """Keep only these sentences."""
        mask = self._keys_values[0].mask
        mask = None if mask is None else mask.index_select(0, sentences)
        kept = Kept.of(sentences)
        self._keys_values = [
            KeyValues(kept(k, 0), kept(v, 0), mask) for k, v, _ in self._keys_values
        ]
        self._share()

    def layers(self, make: MakeMatrix) -> Sequence[LayerSource]:
        """The attention of each layer; `make` prepares matrices for the current number of rows."""
        if make is not self._make:
            self._share(make)  # a search starts with one row: wait until its width is known
        elif not self._is_precomputed and self._is_one_short_sentence():
            parts = zip(self._attentions, self._keys_values, strict=True)
            self._layers = [
                Precomputed(attention, keys_values, make) for attention, keys_values in parts
            ]
            self._is_precomputed = True
        return self._layers

    def _share(self, make: MakeMatrix | None = None) -> None:
        self._layers = [Shared(keys_values) for keys_values in self._keys_values]
        self._make, self._is_precomputed = make, False

    def _is_one_short_sentence(self) -> bool:
        n_sentences, _, length, d_k = self._keys_values[0].keys.shape
        return n_sentences == 1 and length <= d_k and self._keys_values[0].mask is None


def _heads(
    attention: MultiHeadAttention, kv: PreparedMatrix, memory: Memory
) -> tuple[Float[Tensor, "B H S Dk"], Float[Tensor, "B H S Dv"]]:
    """Keys and values of the source, contiguous per head."""
    k, v = (
        part.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2).contiguous()
        for part in memory.layout.to_rows(kv(memory.states)).tensor_split([attention.h_dk], dim=-1)
    )
    return k, v
