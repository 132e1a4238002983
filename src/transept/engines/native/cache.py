"""Keys and values that the decoder attends to: of the outputs so far, and of the source.

Those of the outputs grow with each step and are shared by the rows of a beam. Those of the source
do not change.
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
from transept.shapes import Bool, Float, Int, Tensor

FIRST_PLACES = 32
"""A sentence has room for the keys and values of so many tokens at first."""


class Seen(NamedTuple):
    """What a layer's rows attend to, and 0 or −∞ for what each of them may see or not."""

    keys: Float[Tensor, "B H places Dk"]
    values: Float[Tensor, "B H places Dv"]
    mask: Float[Tensor, "B 1 W places"] | None

    def attend(self, q: Float[Tensor, "B H W Dk"], scale: float) -> Float[Tensor, "N HDv"]:
        """Equation (1), the rows of a sentence being queries to the same keys."""
        out = F.scaled_dot_product_attention(
            q, self.keys, self.values, attn_mask=self.mask, scale=scale
        )
        return out.transpose(1, 2).reshape(q.shape[0] * q.shape[2], -1)


class Projected(NamedTuple):
    """Where the rows' queries, keys and values are written first, and how they lie there."""

    qkv: Float[Tensor, "N qkv"]
    q: Float[Tensor, "B H W Dh"]
    kv: Float[Tensor, "2 B H W Dh"]


class LayerCache(NamedTuple):
    """What one layer writes and reads in one step."""

    projected: Projected
    new: Float[Tensor, "2 B H W Dh"]
    """Where the rows' keys and values belong."""
    seen: Seen
    """What it then sees."""


class OutputCache:
    """The keys and values of the outputs so far, for each layer.

    The rows of a sentence share its places. Each new token takes a place of its own, and a mask
    tells each row which places hold its own past. So where a beam branches, two rows see the same
    places and no key is copied. A single row needs no mask: all places are its past. When the room
    is used up, places that no row sees any more are cleared out.
    """

    def __init__(self, config: ModelConfig, memory: Memory) -> None:
        self.n_sentences = len(memory.layout.segments)
        self.width = 1
        self._window = config.decoder_window
        self._n_places = 0
        heads = (config.n_heads, FIRST_PLACES, max(config.d_k, config.d_v))
        self._kv: Float[Tensor, "Y 2 B H places Dh"]
        self._kv = memory.states.new_empty(config.n_layers, 2, self.n_sentences, *heads)
        self._projected = self._room_to_project()
        self._mask: Float[Tensor, "N places"] | None = None
        """0 where a row has its past, else −∞; None where a row has it in all places."""
        if self._window is not None:
            self._mask = memory.states.new_empty(self.n_sentences, 0)
        self._own: Float[Tensor, "N W"] = memory.states.new_zeros(self.n_sentences, 1)
        """What a step adds to the mask: of its sentence's new places, a row sees its own."""

    def append(self) -> list[LayerCache]:
        """A place for each row."""
        if self._n_places + self.width > self._kv.shape[4]:
            self._make_room()
        start, end = self._n_places, self._n_places + self.width
        self._n_places = end
        mask = self._visible(end)
        new = self._kv.narrow(4, start, self.width).unbind(0)
        # The views of all layers at once: one by one they would take as long as a product.
        kv = self._kv.narrow(4, 0, end).flatten(0, 1).unbind(0)
        parts = zip(new, kv[::2], kv[1::2], strict=True)
        return [LayerCache(self._projected, own, Seen(k, v, mask)) for own, k, v in parts]

    def _visible(self, end: int) -> Float[Tensor, "B 1 W places"] | None:
        """What each row sees now that it has another place; None where that is all."""
        if self._mask is None:
            return None
        self._mask = torch.cat([self._mask, self._own], dim=1)
        if self._window is not None:
            back = (self._mask == 0).flip(1).cumsum(1).flip(1)
            self._mask = self._mask.masked_fill(back > self._window, -torch.inf)
        return self._mask.view(self.n_sentences, 1, self.width, end)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows, as many of each sentence as before."""
        if self._mask is not None:
            self._mask = self._mask.index_select(0, rows)

    def keep(self, sentences: Int[Tensor, " B"], width: int) -> None:
        """Forget the other sentences; these have so many rows from now on."""
        if self._mask is None and width > 1:
            self._mask = self._kv.new_zeros(self.n_sentences, self._n_places)
        if len(sentences) < self.n_sentences:
            self._kv = self._kv[:, :, sentences]
        self.n_sentences, self.width = len(sentences), width
        self._projected = self._room_to_project()
        others = ~torch.eye(width, dtype=torch.bool, device=sentences.device)
        self._own = additive_mask(others, self._kv).repeat(self.n_sentences, 1)

    def _room_to_project(self) -> Projected:
        """For the rows that there are now; the layers use it one after the other."""
        n_heads, d_head = self._kv.shape[3], self._kv.shape[5]
        qkv = self._kv.new_empty(self.n_sentences, self.width, 3, n_heads, d_head)
        heads = qkv.permute(2, 0, 3, 1, 4)
        return Projected(qkv.flatten(0, 1).flatten(1), heads[0], heads[1:])

    def _make_room(self) -> None:
        """Clear out places in which no row has its past; make room for twice what is left."""
        if self._mask is None:
            mask = self._kv.new_zeros(self.n_sentences, self.width, self._n_places)
        else:
            mask = self._mask.view(self.n_sentences, self.width, -1)
        used = (mask == 0).any(dim=1)
        self._n_places = int(used.sum(dim=1).max())
        # The used ones first, in their order; where a sentence has fewer, no row sees the others.
        order = used.byte().argsort(dim=1, descending=True, stable=True)[:, : self._n_places]
        n_places = max(FIRST_PLACES, 2 * self._n_places + self.width)
        self._kv = _moved(self._kv, order, n_places)
        if self._mask is not None:
            self._mask = mask.gather(2, order[:, None].expand(-1, self.width, -1)).flatten(0, 1)


def _moved(
    x: Float[Tensor, "Y 2 B H places Dh"], order: Int[Tensor, "B M"], n_places: int
) -> Float[Tensor, "Y 2 B H _ Dh"]:
    """The places in this order, with room for so many."""
    *each, n_old, width = x.shape
    room = x.new_empty(*each, n_places, width)
    first = torch.arange(0, x[..., 0].numel(), n_old, device=x.device)
    taken = first.view(*each, 1) + order[:, None]
    moved = x.flatten(0, 4).index_select(0, taken.flatten())
    room[..., : order.shape[1], :] = moved.view(*taken.shape, width)
    return room


def additive_mask(hidden: Bool[Tensor, "*shape"], like: Tensor) -> Float[Tensor, "*shape"]:
    """−∞ for what is hidden, else 0."""
    return like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)


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
        for part in memory.layout.to_rows(kv(memory.states)).tensor_split([attention.h_dk], dim=-1)
    )
    return k, v
