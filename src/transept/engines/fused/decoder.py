"""A step of the decoder on the device: one token for each row in, logits out, without the host.

A row is a hypothesis. `model.incremental` computes the same in plain PyTorch, and parity tests
compare the two.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn import functional as F

from transept.engines.fused.sizes import Sizes
from transept.engines.fused.weights import DecodingWeights
from transept.engines.kernels.attention_step import attend_past, attend_source
from transept.engines.kernels.beams import DeviceBeams
from transept.engines.kernels.slots import Slotted
from transept.engines.program import Norm, Product, ResidualStream, StackNorms, decoder_layer
from transept.model.transformer import DecoderLayer
from transept.shapes import Float, Int, Tensor

COLUMNS = 64
"""The vocabulary is padded to a multiple of so many tokens: then a kernel can read four logits of a
row at a time."""


@dataclass(frozen=True, slots=True)
class Caches(Slotted):
    """Keys and values of the sentences in all slots, for all layers."""

    past: Float[Tensor, "Y R W L 2 D"]
    """Of the tokens that each hypothesis has written."""
    source: Float[Tensor, "R S Y 2 D"]
    """Of the source tokens."""
    source_length: Int[Tensor, " R"]


class NumberedLayer(NamedTuple):
    """A layer, and its place in the stack and in the caches."""

    number: int
    module: DecoderLayer


@dataclass(frozen=True, slots=True)
class FusedStepOperations:
    """The operations of the decoder for one new token per row."""

    weights: DecodingWeights
    beams: DeviceBeams
    caches: Caches

    def self_attention(self, h: Float[Tensor, "N D"], layer: NumberedLayer) -> Product:
        """Attention to the tokens so far, whose keys and values are cached."""
        attention = layer.module.self_attention
        past = self.caches.past[layer.number]
        heads = attend_past(attention.w_qkv(h), past, self.beams, attention.n_heads)
        return Product(heads, attention.w_o)

    def source_attention(self, h: Float[Tensor, "N D"], layer: NumberedLayer) -> Product:
        """Attention to the source, whose keys and values never change."""
        attention, caches = layer.module.source_attention, self.caches
        q = F.linear(h, *attention.w_q)
        heads = attend_source(
            q, caches.source, caches.source_length, self.beams, layer.number, attention.n_heads
        )
        return Product(heads, attention.w_o)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: NumberedLayer) -> Product:
        """Equation (2)."""
        return self.weights.feed_forward(layer.module.feed_forward, h)

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """X + y and its layer normalization."""
        return self.weights.add_norm(stream, y, norm)


class DeviceDecoder:
    """A model's decoder: takes one token for each row, and gives the logits of the next."""

    def __init__(self, weights: DecodingWeights) -> None:
        self._weights, self.config = weights, weights.config
        self.device, self.dtype = weights.device, weights.dtype
        self.start_id = weights.model.start_id
        stack = weights.model.decoder.stack
        self._layers = [NumberedLayer(*parts) for parts in enumerate(stack)]
        self._norms = StackNorms(weights.model.decoder)
        keys_and_values = [layer.source_attention.w_kv for layer in stack]
        self._source_kv = torch.cat([weight for weight, _ in keys_and_values])
        biases = [bias for _, bias in keys_and_values if bias is not None]
        self._source_kv_bias = torch.cat(biases) if biases else None
        weight = weights.model.projection.weight
        self._projection = F.pad(weight, (0, 0, 0, -len(weight) % COLUMNS))

    def n_cached(self, sizes: Sizes) -> int:
        """How many numbers caches of these sizes hold."""
        return sum(math.prod(shape) for shape in self._shapes(sizes))

    def caches(self, memory: Float[Tensor, " numbers"], sizes: Sizes) -> Caches:
        """Caches in this memory. It is handed in, so that one search after another can use it."""
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
        """Store the keys and values of encoded source tokens.

        Args:
            states: What the encoder gave for each token.
            rows: Where each token goes: slot · source places of a slot + place in the slot.
            caches: Where they are stored.
        """
        flat = caches.source.flatten(0, 1).flatten(1)
        flat.index_copy_(0, rows, F.linear(states, self._source_kv, self._source_kv_bias))

    def write(self, beams: DeviceBeams, caches: Caches) -> Float[Tensor, "N C"]:
        """The logits of the token that follows each row's last one."""
        weights = self._weights
        # A kernel reads this memory as it lies. For one sentence, `flatten` alone would give a view
        # with stride 0.
        positions = beams.length[:, None].expand_as(beams.token).contiguous().view(-1)
        embedding, table = weights.model.target_embedding, weights.target_positions
        y = weights.embed(embedding, beams.token.flatten(), positions, table)
        ops, stream = (
            FusedStepOperations(weights, beams, caches),
            weights.enter(y, self._norms.first),
        )
        for layer, norms in zip(self._layers, self._norms.layers, strict=True):
            stream = decoder_layer(stream, layer, norms, ops)
        return self._project(stream.h)

    def _project(self, y: Float[Tensor, "N D"]) -> Float[Tensor, "N C"]:
        """The logits, in single precision even if the network computes in half precision."""
        if y.dtype == torch.float32:
            logits = y @ self._projection.T
        else:
            logits = torch.mm(y, self._projection.T, out_dtype=torch.float32)
        bias = self._weights.model.projection.bias
        if bias is not None:
            logits[:, : len(bias)] += bias
        return logits
