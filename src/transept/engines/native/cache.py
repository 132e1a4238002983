"""Keys and values of the outputs so far, shared by the rows of a beam."""

from typing import NamedTuple

import torch
from torch.nn import functional as F

from transept.model.config import ModelConfig
from transept.model.transformer import Memory
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
