"""The encoder on the device: sentences laid end to end, one CUDA graph for each size of batch.

`Transformer.encode` computes the same in plain PyTorch. There, launching a hundred small kernels
takes longer than their computation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from transept.engines.fused.sizes import room
from transept.engines.fused.weights import DecodingWeights
from transept.engines.kernels.attention import Sight, TokenSide, attend
from transept.engines.program import Norm, Product, ResidualStream, StackNorms, encoder_layer
from transept.model.transformer import EncoderLayer
from transept.shapes import Float, Int, Tensor

TILE = 64
"""The tokens of a tile. The attention kernel finds the keys for all queries of a tile at once."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Sentences laid end to end, and padding up to a whole number of tiles."""

    tokens: Int[Tensor, "3 N"]
    """The id of each token, its position, and the number of its sentence, from 1; 0 is padding."""
    spans: Int[Tensor, "tiles 2"]
    """For each tile, the first tile and the end of the tiles in which its sentences lie."""

    @classmethod
    def of(cls, sources: Sequence[Sequence[int]], n_tokens: int, pad_id: int) -> "Packed":
        """Lay sentences out in `n_tokens` places."""
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
        # tile of padding alone sees only itself: nobody reads its states.
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
    """A model's encoder: turns sentences into the states that the decoder attends to."""

    def __init__(self, weights: DecodingWeights) -> None:
        self._weights, self._layers = weights, weights.model.encoder.stack
        self._norms = StackNorms(weights.model.encoder)
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, Packed, Tensor]] = {}

    def __call__(self, sources: Sequence[Sequence[int]]) -> Float[Tensor, "N D"]:
        """The states of all tokens, sentence after sentence."""
        n = sum(map(len, sources))
        packed = Packed.of(sources, room(n, TILE), self._weights.config.pad_id)
        if self._weights.device.type != "cuda":
            return self._encode(packed)[:n]
        return self._replay(packed)[:n].clone()

    def _replay(self, packed: Packed) -> Float[Tensor, "N D"]:
        n_tokens = packed.tokens.shape[1]
        if n_tokens not in self._graphs:
            ours = packed.to(self._weights.device)
            self._encode(ours)  # kernels are compiled at their first run, which no graph may record
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
        sight = Sight(side, side, packed.spans, TILE, band.before, band.after)
        embedding, table = weights.model.source_embedding, weights.source_positions
        x = weights.embed(embedding, ids, positions, table)
        ops, stream = FusedEncoderOperations(weights, sight), weights.enter(x, self._norms.first)
        for layer, norms in zip(self._layers, self._norms.layers, strict=True):
            stream = encoder_layer(stream, layer, norms, ops)
        return stream.h


@dataclass(frozen=True, slots=True)
class FusedEncoderOperations:
    """The operations of the encoder over one batch."""

    weights: DecodingWeights
    sight: Sight

    def self_attention(self, h: Float[Tensor, "N D"], layer: EncoderLayer) -> Product:
        """Equation (1) for all heads, each sentence by itself."""
        attention = layer.self_attention
        q, k, v = attention.split(attention.w_qkv(h))
        heads, _ = attend(q, k, v, self.sight, attention.n_heads, self.weights.no_drop)
        return Product(heads, attention.w_o)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: EncoderLayer) -> Product:
        """Equation (2)."""
        return self.weights.feed_forward(layer.feed_forward, h)

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """X + y and its layer normalization."""
        return self.weights.add_norm(stream, y, norm)
