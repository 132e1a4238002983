"""Keys and values of the outputs so far, shared by the rows of a beam."""

from typing import NamedTuple

import torch
from torch.nn import functional as F

from transept.model.config import ModelConfig
from transept.model.transformer import Memory
from transept.shapes import Bool, Float, Int, Tensor

FIRST_SLOTS = 32
"""A sentence has room for the keys and values of so many tokens at first."""


class Seen(NamedTuple):
    """What a layer's rows attend to, and 0 or −∞ for what each of them may see or not."""

    keys: Float[Tensor, "B H C Dk"]
    values: Float[Tensor, "B H C Dv"]
    mask: Float[Tensor, "B 1 W C"] | None

    def attend(self, q: Float[Tensor, "N HDk"]) -> Float[Tensor, "N HDv"]:
        """Equation (1), the rows of a sentence being queries to the same keys."""
        queries = heads(q, self.keys)
        out = F.scaled_dot_product_attention(queries, self.keys, self.values, attn_mask=self.mask)
        return out.transpose(1, 2).reshape(len(q), -1)


def heads(x: Float[Tensor, "N HDh"], like: Float[Tensor, "B H C Dh"]) -> Float[Tensor, "B H W Dh"]:
    """The rows of each sentence, head by head, as the keys or values are."""
    n_sentences, n_heads, _, width = like.shape
    return x.view(n_sentences, -1, n_heads, width).transpose(1, 2)


class LayerCache(NamedTuple):
    """For one layer in one step: where the rows' keys and values belong, and what it then sees."""

    new_keys: Float[Tensor, "B H W Dk"]
    new_values: Float[Tensor, "B H W Dv"]
    seen: Seen

    def put(self, k: Float[Tensor, "N HDk"], v: Float[Tensor, "N HDv"]) -> None:
        """Keep the rows' keys and values."""
        self.new_keys.copy_(heads(k, self.new_keys))
        self.new_values.copy_(heads(v, self.new_values))


class OutputCache:
    """What each layer sees of the outputs so far.

    Each token that is appended to a row gets a slot among its sentence's, and a mask says in which
    slots each row has its past. Where a beam branches, two rows have the same past: no key is ever
    copied. When the room is used up, slots in which no row has its past any more are cleared out.
    """

    def __init__(self, config: ModelConfig, memory: Memory) -> None:
        self.n_sentences = len(memory.layout.segments)
        self.width = 1
        self._window = config.decoder_window
        self._n_slots = 0
        shape = (config.n_layers, self.n_sentences, config.n_heads, FIRST_SLOTS)
        self._keys = memory.states.new_empty(*shape, config.d_k)
        self._values = memory.states.new_empty(*shape, config.d_v)
        self._mask = memory.states.new_empty(self.n_sentences, 0)
        self._own = memory.states.new_zeros(self.n_sentences, 1)

    def append(self) -> list[LayerCache]:
        """A slot for each row."""
        if self._n_slots + self.width > self._keys.shape[3]:
            self._make_room()
        start, end = self._n_slots, self._n_slots + self.width
        self._n_slots = end
        self._mask = torch.cat([self._mask, self._own], dim=1)
        if self._window is not None:
            back = (self._mask == 0).flip(1).cumsum(1).flip(1)
            self._mask = self._mask.masked_fill(back > self._window, -torch.inf)
        mask = self._mask.view(self.n_sentences, 1, self.width, end)
        keys, values = self._keys[:, :, :, :end], self._values[:, :, :, :end]
        new = keys[:, :, :, start:].unbind(0), values[:, :, :, start:].unbind(0)
        return [
            LayerCache(new_k, new_v, Seen(k, v, mask))
            for new_k, new_v, k, v in zip(*new, keys.unbind(0), values.unbind(0), strict=True)
        ]

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows, as many of each sentence as before."""
        self._mask = self._mask.index_select(0, rows)

    def keep(self, sentences: Int[Tensor, " B"], width: int) -> None:
        """Forget the other sentences; these have so many rows from now on."""
        if len(sentences) < self.n_sentences:
            self._keys, self._values = self._keys[:, sentences], self._values[:, sentences]
        self.n_sentences, self.width = len(sentences), width
        others = ~torch.eye(width, dtype=torch.bool, device=sentences.device)
        self._own = additive_mask(others, self._keys).repeat(self.n_sentences, 1)

    def _make_room(self) -> None:
        """Clear out slots that are of no use any more; where most are, take twice the room."""
        mask = self._mask.view(self.n_sentences, self.width, -1)
        used = (mask == 0).any(dim=1)
        self._n_slots = int(used.sum(dim=1).max())
        # The used ones first, in their order; where a sentence has fewer, no row sees the others.
        order = used.byte().argsort(dim=1, descending=True, stable=True)[:, : self._n_slots]
        n_slots = max(FIRST_SLOTS, 2 * self._n_slots + self.width)
        self._keys = _moved(self._keys, order, n_slots)
        self._values = _moved(self._values, order, n_slots)
        self._mask = mask.gather(2, order[:, None].expand(-1, self.width, -1)).flatten(0, 1)


def _moved(
    x: Float[Tensor, "Y B H C Dh"], order: Int[Tensor, "B M"], n_slots: int
) -> Float[Tensor, "Y B H K Dh"]:
    """The slots in this order, with room for so many."""
    n_layers, n_sentences, n_heads, n_old, width = x.shape
    room = x.new_empty(n_layers, n_sentences, n_heads, n_slots, width)
    first = torch.arange(0, x[..., 0].numel(), n_old, device=x.device)
    places = first.view(n_layers, n_sentences, n_heads, 1) + order[:, None]
    moved = x.flatten(0, 3).index_select(0, places.flatten())
    room[:, :, :, : order.shape[1]] = moved.view(*places.shape, width)
    return room


def additive_mask(hidden: Bool[Tensor, "*shape"], like: Tensor) -> Float[Tensor, "*shape"]:
    """−∞ for what is hidden, else 0."""
    return like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
