"""Forward and backward pass of the whole network, from ids to the gradients of every weight."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch

from transept.engines.kernels.attention import AttentionSpec, TokenSide, spans
from transept.engines.kernels.logits import cross_entropy
from transept.engines.kernels.pointwise import Drop, embed, embed_backward
from transept.engines.program import StackNorms, decoder_layer, encoder_layer
from transept.engines.training.operations import (
    Copies,
    Matrix,
    PositionWise,
    SelfAttention,
    SourceAttention,
    TapedOperations,
    TrainedDecoderLayer,
    TrainedEncoderLayer,
    accumulate,
    gradient_of,
)
from transept.model.layers import Embedding, Residual
from transept.model.packing import Band, Tokens
from transept.model.positions import LearnedPositions, Positions
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Float, Int, Tensor
from transept.training.loss import Loss, LossSums

LOGITS = 1 << 28
"""Logits per chunk: half a gigabyte."""

ALIGNMENT = 64
"""Logits per cache line."""

NO_PADDING = -1
"""A pad id that no position has."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The layout of a batch."""

    tile: int
    """Tokens per tile."""
    row_tiles: int
    """Tiles per row."""


class FusedNetwork:
    """Computes the loss of a batch and adds the gradients to those of the weights.

    Args:
        model: Holds the weights in single precision and, after a call, their gradients.
        loss: The training objective.
        tiles: The layout of every batch.
        seed: Two numbers on the device, the seed of every dropout.
        dtype: The type of matrix products.
    """

    def __init__(
        self,
        model: Transformer,
        loss: Loss,
        tiles: Tiles,
        seed: Int[Tensor, "2"],
        dtype: torch.dtype,
    ) -> None:
        self.model, self.loss, self.tiles, self.dtype = model, loss, tiles, dtype
        self.copies = Copies(dtype)
        drops = _Drops(seed)
        p = model.config.dropout
        self.source_drop, self.target_drop = drops.next(p), drops.next(p)
        self.encoder = [_encoder_layer(one, drops, self.copies) for one in model.encoder.stack]
        self.decoder = [_decoder_layer(one, drops, self.copies) for one in model.decoder.stack]
        self.encoder_norms = StackNorms(model.encoder)
        self.decoder_norms = StackNorms(model.decoder)
        self.source_kv = SourceKeysAndValues(model, self.copies)
        self.projection = Matrix.of(model.projection, self.copies)
        self.source_positions = self._table(model.source_positions)
        self.target_positions = self._table(model.target_positions)

    def __call__(self, source: Tokens, target: Tokens, scale: Float[Tensor, ""]) -> LossSums:
        """Add `scale` times the gradients of the summed loss to those of the weights."""
        self.copies.refresh()
        specs = _AttentionSpecs(source, target, self.tiles, self.model)
        memory, encoder_backward = self._encode(source, specs)
        states, decoder_backward = self._decode(target, memory, specs)
        sums, d_states = self._loss(states, target.ids, scale)
        encoder_backward(decoder_backward(d_states))
        return sums

    def _encode(
        self, source: Tokens, specs: "_AttentionSpecs"
    ) -> tuple[Tensor, Callable[[Tensor], None]]:
        side = _InputSide(
            source.ids, source.layout.positions, self.model.source_embedding,
            self.model.source_positions, self.source_positions, self.source_drop,
        )  # fmt: skip
        ops = TapedOperations(specs.source, specs.source)
        stream = ops.enter(side.embed(self.dtype), self.encoder_norms.first, self.source_drop)
        for layer, norms in zip(self.encoder, self.encoder_norms.layers, strict=True):
            stream = encoder_layer(stream, layer, norms, ops)
        return stream.h, lambda d_states: side.embed_backward(ops.backward(d_states))

    def _decode(
        self, target: Tokens, memory: Tensor, specs: "_AttentionSpecs"
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        model = self.model
        side = _InputSide(
            target.shifted_right(model.start_id).ids, target.layout.positions,
            model.target_embedding, model.target_positions, self.target_positions,
            self.target_drop,
        )  # fmt: skip
        kv = self.source_kv.forward(memory)
        d_kv = torch.empty_like(kv)
        ops = TapedOperations(specs.target, specs.across)
        stream = ops.enter(side.embed(self.dtype), self.decoder_norms.first, self.target_drop)
        for number, norms in enumerate(self.decoder_norms.layers):
            parts = (self.source_kv.part(each, number) for each in (kv, d_kv))
            layer = TrainedDecoderLayer(*self.decoder[number], *parts)
            stream = decoder_layer(stream, layer, norms, ops)

        def backward(d_states: Tensor) -> Tensor:
            side.embed_backward(ops.backward(d_states))
            return self.source_kv.backward(d_kv, memory)

        return stream.h, backward

    def _table(self, positions: Positions) -> Float[Tensor, "L D"]:
        """The encodings of all positions of a row, at a fixed address for CUDA graphs."""
        n_rows = self.tiles.tile * self.tiles.row_tiles
        positions.reach(n_rows)
        if isinstance(positions, LearnedPositions):
            return positions.weight.detach()
        # A copy: the table of sinusoids is replaced when a longer sentence is validated.
        return positions.at(torch.arange(n_rows, device=self.projection.value.device))

    def _loss(self, states: Tensor, target_ids: Tensor, scale: Tensor) -> tuple[LossSums, Tensor]:
        """Projection and cross-entropy, in chunks of tokens, and the gradient of the states."""
        vocab_size = len(self.projection.value)
        epsilon = self.loss.uniform_smoothing(vocab_size)
        d_states = torch.empty_like(states)
        losses = []
        n_chunks = -(-len(states) * vocab_size // LOGITS)
        # Rows aligned to cache lines are much faster to read and write.
        width = -(-vocab_size // ALIGNMENT) * ALIGNMENT
        buffer = states.new_empty(-(-len(states) // n_chunks), width)
        for rows in torch.arange(len(states)).tensor_split(n_chunks):
            chunk = slice(int(rows[0]), int(rows[-1]) + 1)
            logits = torch.mm(
                states[chunk], self.projection.value.T, out=buffer[: len(rows), :vocab_size]
            )
            if self.projection.bias is not None:
                logits += self.projection.bias
            losses.append(
                cross_entropy(logits, target_ids[chunk], epsilon, self.loss.pad_id, scale)
            )
            self.projection.add_bias_gradient(logits)
            torch.mm(logits, self.projection.value, out=d_states[chunk])
            accumulate(self.projection.gradient, logits.T, states[chunk])
        smoothed, nll = torch.cat(losses).sum(0)
        return LossSums(smoothed, nll), d_states


@dataclass(frozen=True, slots=True)
class _InputSide:
    """The input of a stack: embedding · √d_model + positional encoding, with dropout."""

    ids: Int[Tensor, " N"]
    positions: Int[Tensor, " N"]
    embedding: Embedding
    encoding: Positions
    table: Float[Tensor, "L D"]
    drop: Drop

    def embed(self, dtype: torch.dtype) -> Float[Tensor, "N D"]:
        embedding = self.embedding
        return embed(
            self.ids, embedding.weight, self.positions, self.table, embedding.scale,
            embedding.pad_id, self.drop, dtype,
        )  # fmt: skip

    def embed_backward(self, d_out: Float[Tensor, "N D"]) -> None:
        gradient, embedding = gradient_of(self.embedding.weight), self.embedding
        embed_backward(d_out, self.ids, gradient, embedding.scale, embedding.pad_id, self.drop)
        if isinstance(self.encoding, LearnedPositions):
            # Padding is at position 0, and its gradient is zero.
            gradient = gradient_of(self.encoding.weight)
            embed_backward(d_out, self.positions, gradient, 1.0, NO_PADDING, self.drop)


class SourceKeysAndValues:
    """Keys and values of the source for all decoder layers, in one matrix product per direction."""

    def __init__(self, model: Transformer, copies: Copies) -> None:
        attentions = [layer.source_attention for layer in model.decoder.stack]
        self.value = copies.of([one.w_kv[0] for one in attentions])
        self.gradients = [gradient_of(one.w_qkv.weight)[one.h_dk :] for one in attentions]
        biases = [bias for _, bias in (one.w_kv for one in attentions) if bias is not None]
        self.bias = copies.of(biases) if biases else None
        self.d_biases = [gradient_of(one.w_qkv.bias)[one.h_dk :] for one in attentions if biases]
        self.width = len(self.value) // len(attentions)

    def part(self, kv: Float[Tensor, "N all_kv"], layer: int) -> Float[Tensor, "N kv"]:
        """The keys and values of one layer."""
        return kv[:, layer * self.width : (layer + 1) * self.width]

    def forward(self, memory: Float[Tensor, "N D"]) -> Float[Tensor, "N all_kv"]:
        """The keys and values of all layers, concatenated."""
        if self.bias is None:
            return memory @ self.value.T
        return torch.addmm(self.bias, memory, self.value.T)

    def backward(
        self, d_kv: Float[Tensor, "N all_kv"], memory: Float[Tensor, "N D"]
    ) -> Float[Tensor, "N D"]:
        """Return ∂/∂memory and add to the gradients of the weights."""
        gradient = torch.zeros_like(self.value, dtype=self.gradients[0].dtype)
        accumulate(gradient, d_kv.T, memory)
        torch._foreach_add_(self.gradients, gradient.split(self.width))
        if self.d_biases:
            sums = d_kv.sum(0, dtype=self.d_biases[0].dtype)
            torch._foreach_add_(self.d_biases, sums.split(self.width))
        return d_kv @ self.value


class _AttentionSpecs:
    """Which keys the queries see, in the three kinds of attention."""

    def __init__(self, source: Tokens, target: Tokens, tiles: Tiles, model: Transformer) -> None:
        sides = tuple(
            TokenSide(one.layout.segments.flatten(), one.layout.positions)
            for one in (source, target)
        )
        both = spans((sides[0].segments, sides[1].segments), tiles.tile, tiles.row_tiles)

        def spec(queries: TokenSide, keys: TokenSide, band: Band) -> AttentionSpec:
            return AttentionSpec(queries, keys, both, tiles.tile, band.before, band.after)

        self.source = spec(sides[0], sides[0], model.encoder.band)
        self.target = spec(sides[1], sides[1], model.decoder.band)
        self.across = spec(sides[1], sides[0], Band())


class _Drops:
    """Numbers the dropouts of the network."""

    def __init__(self, seed: Int[Tensor, "2"]) -> None:
        self._seed, self._sites = seed, itertools.count()

    def next(self, p: float) -> Drop:
        return Drop(p, self._seed, next(self._sites))

    def of(self, layer: EncoderLayer | DecoderLayer) -> list[Drop]:
        return [self.next(cast(Residual, one).dropout.p) for one in layer.residuals]


def _encoder_layer(layer: EncoderLayer, drops: _Drops, copies: Copies) -> TrainedEncoderLayer:
    first, second = drops.of(layer)
    return TrainedEncoderLayer(
        SelfAttention(layer.self_attention, first, copies),
        PositionWise(layer.feed_forward, second, copies),
    )


def _decoder_layer(
    layer: DecoderLayer, drops: _Drops, copies: Copies
) -> tuple[SelfAttention, SourceAttention, PositionWise]:
    first, second, third = drops.of(layer)
    return (
        SelfAttention(layer.self_attention, first, copies),
        SourceAttention(layer.source_attention, second, copies),
        PositionWise(layer.feed_forward, third, copies),
    )
