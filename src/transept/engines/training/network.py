"""The whole network forward and backward, from ids to the gradients of every weight."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from transept.engines.kernels.attention import Side, Sight, spans
from transept.engines.kernels.cross_entropy import cross_entropy
from transept.engines.kernels.dropout import Drop
from transept.engines.kernels.embedding import embed, embed_backward
from transept.engines.training.matrix import Copies, Matrix, accumulate, gradient_of
from transept.engines.training.sublayers import (
    PositionWise,
    Residual,
    SelfAttention,
    SourceAttention,
)
from transept.model.layers import Embedding
from transept.model.packing import Band, Tokens
from transept.model.positions import SinusoidalPositions
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Float, Int, Tensor
from transept.training.loss import Loss, LossSums

LOGITS = 1 << 28
"""Logits held at a time: half a gigabyte."""

LINE = 64
"""Logits to a cache line."""

Backward = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Tiles:
    """How sentences lie in a batch: tiles of so many tokens, and rows of so many tiles."""

    tile: int
    row_tiles: int


class FusedNetwork:
    """The network, ready to add a batch's gradients to its weights.

    Args:
        model: Holds the weights, in single precision, and after a call their gradients.
        loss: What is minimised.
        tiles: The layout of every batch that will come.
        seed: Two numbers on the device that every dropout follows from.
        dtype: What matrices are multiplied in.
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
        sites = itertools.count()
        p = model.config.dropout
        self.source_drop, self.target_drop = (Drop(p, seed, next(sites)) for _ in range(2))
        build = _Builder(seed, sites, self.copies)
        self.encoder = [build.encoder_layer(one) for one in model.encoder.stack]
        self.decoder = [build.decoder_layer(one) for one in model.decoder.stack]
        self.source_kv = SourceKeysAndValues(model, self.copies)
        weight = model.projection.weight
        self.projection = Matrix(self.copies.of([weight]), gradient_of(weight))
        # Of its own, and never moved: the model's may be, for a longer sentence to be validated,
        # and graphs know where it is.
        n_rows = tiles.tile * tiles.row_tiles
        self.positions = SinusoidalPositions(model.config.d_model, n_rows).to(weight.device)

    def __call__(self, source: Tokens, target: Tokens, scale: Float[Tensor, ""]) -> LossSums:
        """Add `scale` times the gradients of the summed loss to those of the weights."""
        self.copies.refresh()
        sights = _Sights(source, target, self.tiles, self.model)
        memory, encoder_backward = self._encode(source, sights)
        states, decoder_backward = self._decode(target, memory, sights)
        sums, d_states = self._lose(states, target.ids, scale)
        encoder_backward(decoder_backward(d_states))
        return sums

    def _encode(self, source: Tokens, sights: "_Sights") -> tuple[Tensor, Callable[[Tensor], None]]:
        embedding = self.model.source_embedding
        x = self._embed(source.ids, source, embedding, self.source_drop)
        tapes = []
        for attention, feed_forward in self.encoder:
            x, first = attention.forward(x, sights.source)
            x, second = feed_forward.forward(x)
            tapes.append((first, second))

        def backward(dx: Tensor) -> None:
            for attention, feed_forward in reversed(self.encoder):
                first, second = tapes.pop()
                dx = attention.backward(feed_forward.backward(dx, second), first)
            self._embed_backward(dx, source.ids, embedding, self.source_drop)

        return x, backward

    def _decode(self, target: Tokens, memory: Tensor, sights: "_Sights") -> tuple[Tensor, Backward]:
        model = self.model
        ids = target.shifted_right(model.start_id).ids
        y = self._embed(ids, target, model.target_embedding, self.target_drop)
        kv = self.source_kv.forward(memory)
        tapes = []
        for number, (attention, source_attention, feed_forward) in enumerate(self.decoder):
            y, first = attention.forward(y, sights.target)
            y, second = source_attention.forward(y, self.source_kv.part(kv, number), sights.across)
            y, third = feed_forward.forward(y)
            tapes.append((first, second, third))

        def backward(dy: Tensor) -> Tensor:
            d_kv = torch.empty_like(kv)
            for number, (attention, source_attention, feed_forward) in reversed(
                list(enumerate(self.decoder))
            ):
                first, second, third = tapes.pop()
                dy = feed_forward.backward(dy, third)
                dy = source_attention.backward(dy, second, self.source_kv.part(d_kv, number))
                dy = attention.backward(dy, first)
            self._embed_backward(dy, ids, model.target_embedding, self.target_drop)
            return self.source_kv.backward(d_kv, memory)

        return y, backward

    def _lose(self, states: Tensor, target_ids: Tensor, scale: Tensor) -> tuple[LossSums, Tensor]:
        """Projection and cross-entropy, a chunk of tokens at a time; and the states' gradient."""
        vocab_size = len(self.projection.value)
        epsilon = self.loss.uniform_smoothing(vocab_size)
        d_states = torch.empty_like(states)
        losses = []
        n_chunks = -(-len(states) * vocab_size // LOGITS)
        # Rows that begin at a cache line are written and read a good deal faster.
        width = -(-vocab_size // LINE) * LINE
        buffer = states.new_empty(-(-len(states) // n_chunks), width)
        for rows in torch.arange(len(states)).tensor_split(n_chunks):
            chunk = slice(int(rows[0]), int(rows[-1]) + 1)
            logits = torch.mm(
                states[chunk], self.projection.value.T, out=buffer[: len(rows), :vocab_size]
            )
            losses.append(
                cross_entropy(logits, target_ids[chunk], epsilon, self.loss.pad_id, scale)
            )
            torch.mm(logits, self.projection.value, out=d_states[chunk])
            accumulate(self.projection.gradient, logits.T, states[chunk])
        smoothed, nll = torch.cat(losses).sum(0)
        return LossSums(smoothed, nll), d_states

    def _embed(self, ids: Tensor, tokens: Tokens, embedding: Embedding, drop: Drop) -> Tensor:
        return embed(
            ids, embedding.weight, tokens.layout.positions, self.positions.table,
            embedding.scale, embedding.pad_id, drop, self.dtype,
        )  # fmt: skip

    def _embed_backward(self, d_out: Tensor, ids: Tensor, embedding: Embedding, drop: Drop) -> None:
        gradient = gradient_of(embedding.weight)
        embed_backward(d_out, ids, gradient, embedding.scale, embedding.pad_id, drop)


class SourceKeysAndValues:
    """Keys and values of the source for all decoder layers: one multiplication each way."""

    def __init__(self, model: Transformer, copies: Copies) -> None:
        attentions = [layer.source_attention for layer in model.decoder.stack]
        self.value = copies.of([one.w_kv[0] for one in attentions])
        self.gradients = [gradient_of(one.w_qkv.weight)[one.h_dk :] for one in attentions]
        self.width = len(self.value) // len(attentions)

    def part(self, kv: Float[Tensor, "N all_kv"], layer: int) -> Float[Tensor, "N kv"]:
        """One layer's."""
        return kv[:, layer * self.width : (layer + 1) * self.width]

    def forward(self, memory: Float[Tensor, "N D"]) -> Float[Tensor, "N all_kv"]:
        """Of all layers side by side."""
        return memory @ self.value.T

    def backward(
        self, d_kv: Float[Tensor, "N all_kv"], memory: Float[Tensor, "N D"]
    ) -> Float[Tensor, "N D"]:
        """∂/∂memory; the weights' gradients are added to."""
        gradient = torch.zeros_like(self.value, dtype=self.gradients[0].dtype)
        accumulate(gradient, d_kv.T, memory)
        torch._foreach_add_(self.gradients, gradient.split(self.width))
        return d_kv @ self.value


class _Sights:
    """The three kinds of attention in a batch: who sees whom."""

    def __init__(self, source: Tokens, target: Tokens, tiles: Tiles, model: Transformer) -> None:
        sides = tuple(
            Side(one.layout.segments.flatten(), one.layout.positions) for one in (source, target)
        )
        both = spans((sides[0].segments, sides[1].segments), tiles.tile, tiles.row_tiles)

        def sight(queries: Side, keys: Side, band: Band) -> Sight:
            return Sight(queries, keys, both, tiles.tile, band.before, band.after)

        self.source = sight(sides[0], sides[0], model.encoder.band)
        self.target = sight(sides[1], sides[1], model.decoder.band)
        self.across = sight(sides[1], sides[0], Band())


class _Builder:
    """Makes fast layers of plain ones; each dropout gets a number of its own."""

    def __init__(self, seed: Tensor, sites: Iterator[int], copies: Copies) -> None:
        self.seed, self.sites, self.copies = seed, sites, copies

    def encoder_layer(self, layer: EncoderLayer) -> tuple[SelfAttention, PositionWise]:
        first, second = self._residuals(layer)
        return (
            SelfAttention(layer.self_attention, first, self.copies),
            PositionWise(layer.feed_forward, second, self.copies),
        )

    def decoder_layer(
        self, layer: DecoderLayer
    ) -> tuple[SelfAttention, SourceAttention, PositionWise]:
        first, second, third = self._residuals(layer)
        return (
            SelfAttention(layer.self_attention, first, self.copies),
            SourceAttention(layer.source_attention, second, self.copies),
            PositionWise(layer.feed_forward, third, self.copies),
        )

    def _residuals(self, layer: EncoderLayer | DecoderLayer) -> list[Residual]:
        return [Residual.of(one, self.seed, next(self.sites)) for one in layer.residuals]  # type: ignore[arg-type]
