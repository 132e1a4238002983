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

    def attend(self, q: Float[Tensor, "B H W Dk"], scale: float) -> Float[Tensor, "N HDv"]:
        """Equation (1), the rows of a sentence being queries to the same keys."""
        out = F.scaled_dot_product_attention(
            q, self.keys, self.values, attn_mask=self.mask, scale=scale
        )
        return out.transpose(1, 2).reshape(q.shape[0] * q.shape[2], -1)


class LayerCache(NamedTuple):
    """For one layer in one step."""

    new: Float[Tensor, "B G W Dh"]
    """Where the rows' keys and values belong."""
    seen: Seen
    """What it then sees."""


class Room(NamedTuple):
    """One layer's slots, of both kinds together and each by itself."""

    kv: Float[Tensor, "B G C Dh"]
    keys: Float[Tensor, "B H C Dk"]
    values: Float[Tensor, "B H C Dv"]


def _rooms(kv: Float[Tensor, "Y B G C Dh"]) -> list[Room]:
    """The layers' slots."""
    return [Room(layer, *layer.chunk(2, dim=1)) for layer in kv.unbind(0)]


class OutputCache:
    """What each layer sees of the outputs so far.

    Each token that is appended to a row gets a slot among its sentence's, and a mask says in which
    slots each row has its past; a single row has it in all of them, and needs no mask. Where a beam
    branches, two rows have the same past: no key is ever copied. When the room is used up, slots in
    which no row has its past any more are cleared out.
    """

    def __init__(self, config: ModelConfig, memory: Memory) -> None:
        self.n_sentences = len(memory.layout.segments)
        self.width = 1
        self._window = config.decoder_window
        self._n_slots = 0
        n_heads, width = 2 * config.n_heads, max(config.d_k, config.d_v)
        shape = (config.n_layers, self.n_sentences, n_heads, FIRST_SLOTS, width)
        self._kv = memory.states.new_empty(shape)
        self._rooms = _rooms(self._kv)
        self._mask: Tensor | None = None
        if self._window is not None:
            self._mask = memory.states.new_empty(self.n_sentences, 0)
        self._own = memory.states.new_zeros(self.n_sentences, 1)

    def append(self) -> list[LayerCache]:
        """A slot for each row."""
        if self._n_slots + self.width > self._kv.shape[3]:
            self._make_room()
        start, end = self._n_slots, self._n_slots + self.width
        self._n_slots = end
        mask = self._visible(end)
        return [
            LayerCache(
                room.kv.narrow(2, start, self.width),
                Seen(room.keys.narrow(2, 0, end), room.values.narrow(2, 0, end), mask),
            )
            for room in self._rooms
        ]

    def _visible(self, end: int) -> Float[Tensor, "B 1 W C"] | None:
        """What each row sees now that it has another slot; None where that is all."""
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
            self._mask = self._kv.new_zeros(self.n_sentences, self._n_slots)
        if len(sentences) < self.n_sentences:
            self._kv = self._kv[:, sentences]
            self._rooms = _rooms(self._kv)
        self.n_sentences, self.width = len(sentences), width
        others = ~torch.eye(width, dtype=torch.bool, device=sentences.device)
        self._own = additive_mask(others, self._kv).repeat(self.n_sentences, 1)

    def _make_room(self) -> None:
        """Clear out slots that are of no use any more; where most are, take twice the room."""
        if self._mask is None:
            mask = self._kv.new_zeros(self.n_sentences, self.width, self._n_slots)
        else:
            mask = self._mask.view(self.n_sentences, self.width, -1)
        used = (mask == 0).any(dim=1)
        self._n_slots = int(used.sum(dim=1).max())
        # The used ones first, in their order; where a sentence has fewer, no row sees the others.
        order = used.byte().argsort(dim=1, descending=True, stable=True)[:, : self._n_slots]
        n_slots = max(FIRST_SLOTS, 2 * self._n_slots + self.width)
        self._kv = _moved(self._kv, order, n_slots)
        self._rooms = _rooms(self._kv)
        if self._mask is not None:
            self._mask = mask.gather(2, order[:, None].expand(-1, self.width, -1)).flatten(0, 1)


def _moved(
    x: Float[Tensor, "Y B G C Dh"], order: Int[Tensor, "B M"], n_slots: int
) -> Float[Tensor, "Y B G K Dh"]:
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
