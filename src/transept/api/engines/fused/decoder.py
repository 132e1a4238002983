"""The decoder's step on the device: a token a row in, logits out, with nothing for the host to do.

`model.incremental` is the same in plain PyTorch, and parity tests hold the two together.
"""

import math
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from transept.api.engines.fused.sizes import Sizes
from transept.api.engines.fused.weights import Weights
from transept.kernels.attention_step import attend_past, attend_source
from transept.kernels.beams import Beams
from transept.kernels.slots import Slotted
from transept.shapes import Float, Int, Tensor

COLUMNS = 64
"""Logits are computed for a multiple of so many tokens: rows are then read four at a time."""


@dataclass(frozen=True, slots=True)
class Caches(Slotted):
    """Keys and values of what each sentence has read and written."""

    past: Float[Tensor, "Y R W L 2 D"]
    source: Float[Tensor, "R S Y 2 D"]
    source_length: Int[Tensor, " R"]


class DeviceDecoder:
    """A model's decoder: a token a row in, logits out."""

    def __init__(self, weights: Weights) -> None:
        self._weights, self.config = weights, weights.config
        self.device, self.dtype = weights.device, weights.dtype
        self.start_id = weights.model.start_id
        self._layers = weights.model.decoder.stack
        # Without biases, as in the paper: `fit` sees to it.
        self._source_q = [layer.source_attention.w_q[0] for layer in self._layers]
        self._source_kv = torch.cat([layer.source_attention.w_kv[0] for layer in self._layers])
        weight = weights.model.projection.weight
        self._projection = F.pad(weight, (0, 0, 0, -len(weight) % COLUMNS))

    def n_cached(self, sizes: Sizes) -> int:
        """How many numbers the caches hold."""
        return sum(math.prod(shape) for shape in self._shapes(sizes))

    def caches(self, memory: Float[Tensor, " numbers"], sizes: Sizes) -> Caches:
        """Caches in this memory, as one search after another can use it."""
        past, source = self._shapes(sizes)
        n_past, n_source = math.prod(past), math.prod(source)
        return Caches(
            memory[:n_past].view(past),
            memory[n_past : n_past + n_source].view(source),
            torch.zeros(sizes.slots, dtype=torch.int32, device=self.device),
        )

    def _shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        n_layers, d = self.config.n_layers, self.config.d_model
        return (
            (n_layers, sizes.slots, sizes.width, sizes.places, 2, d),
            (sizes.slots, sizes.source, n_layers, 2, d),
        )

    def read(self, states: Float[Tensor, "N D"], rows: Int[Tensor, " N"], caches: Caches) -> None:
        """Keep the keys and values of encoded tokens, each in its row of all slots' places."""
        flat = caches.source.flatten(0, 1).flatten(1)
        flat.index_copy_(0, rows, F.linear(states, self._source_kv))

    def write(self, beams: Beams, caches: Caches) -> Float[Tensor, "N C"]:
        """Logits of what follows each row's last token."""
        weights, n_heads = self._weights, self.config.n_heads
        # Contiguous, since a kernel will read it: flattened, one sentence's would be a view.
        positions = beams.length[:, None].expand_as(beams.token).contiguous().view(-1)
        y = weights.embed(weights.model.target_embedding, beams.token.flatten(), positions)
        for number, layer in enumerate(self._layers):
            attention, to_source = layer.self_attention, layer.source_attention
            past = attend_past(attention.w_qkv(y), caches.past[number], beams, n_heads)
            y = weights.add_norm(y, attention.w_o(past), layer, 0)
            q = F.linear(y, self._source_q[number])
            seen = attend_source(q, caches.source, caches.source_length, beams, number, n_heads)
            y = weights.add_norm(y, to_source.w_o(seen), layer, 1)
            y = weights.add_norm(y, weights.feed_forward(layer.feed_forward, y), layer, 2)
        return self._project(y)

    def _project(self, y: Float[Tensor, "N D"]) -> Float[Tensor, "N C"]:
        """Scores are never rounded to less than single precision."""
        if y.dtype == torch.float32:
            logits = y @ self._projection.T
        else:
            logits = torch.mm(y, self._projection.T, out_dtype=torch.float32)
        bias = self._weights.model.projection.bias
        if bias is not None:
            logits[:, : len(bias)] += bias
        return logits
