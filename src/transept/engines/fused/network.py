"""Encoder and decoder on the device, independent of the host.

The encoder reads concatenated sentences, with one CUDA graph per batch size: launching a hundred
small kernels would take longer than their computation. The decoder reads one token per row, which
is a hypothesis, and returns logits. `Transformer` and `native.network` compute the same in plain
PyTorch, and parity tests compare them.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from transept.engines.kernels import LONGEST
from transept.engines.kernels.attention import AttentionSpec, TokenSide, attend
from transept.engines.kernels.attention_step import attend_past, attend_source
from transept.engines.kernels.beams import DeviceBeams, Slotted
from transept.engines.kernels.pointwise import Drop, add_norm, embed
from transept.engines.program import (
    Norm,
    Product,
    ResidualStream,
    StackNorms,
    decoder_layer,
    encoder_layer,
)
from transept.model.layers import Embedding, FeedForward
from transept.model.positions import LearnedPositions, Positions
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Float, Int, Tensor


@dataclass(frozen=True, slots=True)
class Sizes:
    """The capacity of a workspace. Each needs its own CUDA graphs, so there are few sizes."""

    slots: int
    """Sentences that are decoded at once."""
    width: int
    """W, the live hypotheses per sentence."""
    positions: int
    """Maximum output length in tokens."""
    source: int
    """Maximum source length in tokens."""


def capacity(length: int, least: int) -> int:
    """`least`, doubled until it is at least `length`."""
    size = least
    while size < length:
        size *= 2
    return size


class DecodingWeights:
    """A copy of a model in the type of the search, and operations common to both stacks."""

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.config, self.dtype = model.config, dtype
        self.model = copy.deepcopy(model).requires_grad_(False).eval().to(dtype)
        self.device = self.model.projection.weight.device
        self.source_positions = self._table(model.source_positions)
        self.target_positions = self._table(model.target_positions)
        self.no_drop = Drop(0.0, torch.zeros(2, dtype=torch.int32, device=self.device), 0)

    def _table(self, positions: Positions) -> Float[Tensor, "L D"]:
        """The encodings of all positions.

        They stay in single precision: only their sum with the embedding is rounded. The table has
        its full length from the start, because CUDA graphs store its address. No sentence is longer
        than the learned positions, but the rows of a finished one may read one row beyond them.
        """
        n = LONGEST
        if isinstance(positions, LearnedPositions):
            n = min(n, len(positions.weight))
        positions.reach(n)
        table = positions.at(torch.arange(n, device=self.device)).detach().float()
        return F.pad(table, (0, 0, 0, LONGEST - n))

    def embed(
        self,
        embedding: Embedding,
        ids: Int[Tensor, " N"],
        positions: Int[Tensor, " N"],
        table: Float[Tensor, "L D"],
    ) -> Float[Tensor, "N D"]:
        """The input of a stack: scaled embedding plus positional encoding."""
        return embed(
            ids, embedding.weight, positions, table, embedding.scale,
            embedding.pad_id, self.no_drop, self.dtype,
        )  # fmt: skip

    def enter(self, x: Float[Tensor, "N D"], first: Norm | None) -> ResidualStream:
        """The stream before the first sub-layer."""
        if first is None:
            return ResidualStream(x, x)
        normed = F.layer_norm(x, first.shape, first.weight, first.bias, first.epsilon)
        return ResidualStream(x, normed)

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """Add y to the stream and normalize, in one kernel."""
        normed, saved = add_norm(
            stream.x, y.matrix(y.inner), norm.weight, norm.bias, norm.epsilon, self.no_drop
        )
        return norm.stream(saved.summed, normed)

    def feed_forward(self, network: FeedForward, h: Float[Tensor, "N D"]) -> Product:
        """Equation (2). The first matrix product, its bias and a ReLU are one kernel."""
        if self.config.activation == "relu":
            inner = torch._addmm_activation(network.w_1.bias, h, network.w_1.weight.T)
        else:
            inner = network.activation(network.w_1(h))
        return Product(inner, network.w_2)


TILE = 64
"""Tokens per tile. The attention kernel determines the keys for all queries of a tile at once."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Concatenated sentences, padded to a whole number of tiles."""

    tokens: Int[Tensor, "3 N"]
    """The id of each token, its position, and the number of its sentence, from 1; 0 is padding."""
    spans: Int[Tensor, "tiles 2"]
    """For each tile, the range of tiles that contain its sentences: first, and last plus one."""

    @classmethod
    def of(cls, sources: Sequence[Sequence[int]], n_tokens: int, pad_id: int) -> "Packed":
        """Concatenate sentences, padded to `n_tokens` tokens."""
        flat = np.fromiter(chain.from_iterable(sources), np.int64)
        lengths = np.fromiter(map(len, sources), np.int64)
        ends = lengths.cumsum()
        starts = ends - lengths
        sentence = np.repeat(np.arange(len(sources)), lengths)
        n = len(flat)
        tokens = np.zeros((3, n_tokens), np.int64)
        tokens[0] = pad_id
        tokens[:, :n] = flat, np.arange(n) - starts[sentence], sentence + 1
        # A tile sees all tiles from the start of its first sentence to the end of its last one. A
        # tile with only padding sees only itself: its states are not used.
        tiles = np.arange(n_tokens // TILE)
        first = sentence[np.minimum(tiles * TILE, n - 1)]
        last = sentence[np.minimum(tiles * TILE + TILE - 1, n - 1)]
        spans = np.stack([starts[first] // TILE, -(-ends[last] // TILE)], axis=1)
        beyond = tiles * TILE >= n
        spans[beyond] = np.stack([tiles, tiles + 1], axis=1)[beyond]
        return cls(torch.from_numpy(tokens), torch.from_numpy(spans.astype(np.int32)))

    def to(self, device: torch.device) -> "Packed":
        """A copy on a device."""
        return Packed(self.tokens.to(device), self.spans.to(device))


class DeviceEncoder:
    """The encoder of a model: computes the states that the decoder attends to."""

    def __init__(self, weights: DecodingWeights) -> None:
        self._weights, self._layers = weights, weights.model.encoder.stack
        self._norms = StackNorms(weights.model.encoder)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Packed, Tensor]] = {}

    def __call__(self, sources: Sequence[Sequence[int]]) -> Float[Tensor, "N D"]:
        """The states of all tokens, sentence after sentence."""
        n = sum(map(len, sources))
        packed = Packed.of(sources, capacity(n, TILE), self._weights.config.pad_id)
        if self._weights.device.type != "cuda":
            return self._encode(packed)[:n]
        return self._replay(packed)[:n].clone()

    def _replay(self, packed: Packed) -> Float[Tensor, "N D"]:
        n_tokens = packed.tokens.shape[1]
        if n_tokens not in self._graphs:
            ours = packed.to(self._weights.device)
            self._encode(ours)  # compiles the kernels, which must not happen during a capture
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                states = self._encode(ours)
            self._graphs[n_tokens] = graph, ours, states
        graph, ours, states = self._graphs[n_tokens]
        ours.tokens.copy_(packed.tokens)
        ours.spans.copy_(packed.spans)
        graph.replay()
        return states

    def _encode(self, packed: Packed) -> Float[Tensor, "N D"]:
        weights = self._weights
        ids, positions, segments = packed.tokens
        side = TokenSide(segments, positions)
        band = weights.model.encoder.band
        spec = AttentionSpec(side, side, packed.spans, TILE, band.before, band.after)
        embedding, table = weights.model.source_embedding, weights.source_positions
        x = weights.embed(embedding, ids, positions, table)
        ops, stream = FusedEncoderOperations(weights, spec), weights.enter(x, self._norms.first)
        for layer, norms in zip(self._layers, self._norms.layers, strict=True):
            stream = encoder_layer(stream, layer, norms, ops)
        return stream.h


@dataclass(frozen=True, slots=True)
class FusedEncoderOperations:
    """The operations of the encoder over one batch."""

    weights: DecodingWeights
    spec: AttentionSpec

    def self_attention(self, h: Float[Tensor, "N D"], layer: EncoderLayer) -> Product:
        """Equation (1) for all heads, within each sentence."""
        attention = layer.self_attention
        q, k, v = attention.split(attention.w_qkv(h))
        heads, _ = attend(q, k, v, self.spec, attention.n_heads, self.weights.no_drop)
        return Product(heads, attention.w_o)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: EncoderLayer) -> Product:
        """Equation (2)."""
        return self.weights.feed_forward(layer.feed_forward, h)

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """Add y to the stream and normalize."""
        return self.weights.add_norm(stream, y, norm)


COLUMNS = 64
"""The vocabulary is padded to a multiple of this many tokens, so that a kernel can read four logits
of a row at a time."""


@dataclass(frozen=True, slots=True)
class Caches(Slotted):
    """Keys and values of the sentences in all slots, for all layers."""

    past: Float[Tensor, "Y R W L 2 D"]
    """Keys and values of the tokens of each hypothesis."""
    source: Float[Tensor, "R S Y 2 D"]
    """Keys and values of the source tokens."""
    source_length: Int[Tensor, " R"]


class NumberedLayer(NamedTuple):
    """A layer and its index in the stack and in the caches."""

    number: int
    module: DecoderLayer


@dataclass(frozen=True, slots=True)
class FusedStepOperations:
    """The operations of the decoder for one new token per row."""

    weights: DecodingWeights
    beams: DeviceBeams
    caches: Caches

    def self_attention(self, h: Float[Tensor, "N D"], layer: NumberedLayer) -> Product:
        """Attention to the previous tokens, whose keys and values are cached."""
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
        """Add y to the stream and normalize."""
        return self.weights.add_norm(stream, y, norm)


class DeviceDecoder:
    """The decoder of a model: reads one token per row and returns the logits of the next."""

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
        """The number of elements in caches of these sizes."""
        return sum(math.prod(shape) for shape in self._shapes(sizes))

    def caches(self, memory: Float[Tensor, " numbers"], sizes: Sizes) -> Caches:
        """Caches in this memory, which several searches can use one after another."""
        past, source = self._shapes(sizes)
        n_past, n_source = math.prod(past), math.prod(source)
        return Caches(
            memory[:n_past].view(past),
            memory[n_past : n_past + n_source].view(source),
            torch.zeros(sizes.slots, dtype=torch.int32, device=self.device),
        )

    def _shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], tuple[int, ...]]:
        n_layers, d = self.config.decoder_depth, self.config.d_model
        return (
            (n_layers, sizes.slots, sizes.width, sizes.positions, 2, d),
            (sizes.slots, sizes.source, n_layers, 2, d),
        )

    def read(self, states: Float[Tensor, "N D"], rows: Int[Tensor, " N"], caches: Caches) -> None:
        """Store the keys and values of encoded source tokens.

        Args:
            states: The encoder's output for each token.
            rows: The row of each token: slot · source capacity + position in the sentence.
            caches: The caches to write to.
        """
        flat = caches.source.flatten(0, 1).flatten(1)
        flat.index_copy_(0, rows, F.linear(states, self._source_kv, self._source_kv_bias))

    def write(self, beams: DeviceBeams, caches: Caches) -> Float[Tensor, "N C"]:
        """The logits of the next token of each row."""
        weights = self._weights
        # The kernel ignores strides. For one sentence, `flatten` alone would return a view with
        # stride 0.
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
