"""The encoder, the decoder with a key/value cache, and the likeliest tokens that it finds.

`Transformer.decode` computes every position again at each step. Here each layer keeps the keys and
values of the positions so far, and those of the source, which never change. Parity tests compare
the two, and `encode` with `Transformer.encode`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch.nn import functional as F

from transept.engines.native.cache import LayerCache, LayerSource, OutputCache, SourceCache
from transept.engines.native.weights import (
    PreparedDecoder,
    PreparedDecoderLayer,
    PreparedLayer,
    PreparedMatrix,
    prepare,
)
from transept.engines.program import Norm, Product, ResidualStream, decoder_layer, encoder_layer
from transept.model.packing import Band, Layout, visible
from transept.model.transformer import Memory, Transformer
from transept.shapes import Bool, Float, Int, Tensor


def _enter(x: Float[Tensor, "N D"], first: Norm | None) -> ResidualStream:
    """The stream in front of the first sub-layer."""
    if first is None:
        return ResidualStream(x, x)
    normed = torch.layer_norm(x, first.shape, first.weight, first.bias, first.epsilon)
    return ResidualStream(x, normed)


def _feed_forward(h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
    return Product(layer.activation(layer.inner(h)), layer.outer)


def _add_norm(stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
    """The sum is part of the matrix product. `stream.x` is overwritten."""
    summed = y.matrix.onto(stream.x, y.inner)
    normed = torch.layer_norm(summed, norm.shape, norm.weight, norm.bias, norm.epsilon)
    return norm.stream(summed, normed)


@torch.inference_mode()
def encode(model: Transformer, source_ids: Int[Tensor, "B S"]) -> Memory:
    """Run the encoder over padded ids. On a CPU padding is left out, and weights are prepared."""
    if not source_ids.is_cpu:
        return model.encode(source_ids)
    source = model.source_tokens(source_ids)
    is_padded = bool((source.layout.segments == 0).any())
    if is_padded:
        source = source.without_padding()
    layout, band = source.layout, model.encoder.band
    all_visible = not is_padded and band == Band()
    mask = None if all_visible else visible(layout, layout, band)[:, None]
    prepared = prepare(model)
    ops = NativeEncoderOperations(layout, mask)
    x = model.source_embedding(source.ids) + model.source_positions(layout)
    stream = _enter(x, prepared.encoder_norms.first)
    for layer, norms in zip(prepared.encoder_layers(), prepared.encoder_norms.layers, strict=True):
        stream = encoder_layer(stream, layer, norms, ops)
    return Memory(stream.h, layout)


@dataclass(frozen=True, slots=True)
class NativeEncoderOperations:
    """The operations of the encoder over one batch."""

    layout: Layout
    mask: Bool[Tensor, "B 1 S S"] | None
    """None: every token sees every other one."""

    def self_attention(self, h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
        """Equation (1) for all heads."""
        qkv = self.layout.to_rows(layer.qkv(h))
        heads = qkv.view(*qkv.shape[:2], 3 * layer.n_heads, -1).transpose(1, 2)
        q, k, v = heads.chunk(3, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=layer.scale)
        return Product(self.layout.to_flat(out.transpose(1, 2).flatten(2)), layer.attention_out)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
        """Equation (2)."""
        return _feed_forward(h, layer)

    add_norm = staticmethod(_add_norm)


class IncrementalDecoder:
    """A step for searches: appends a token to each row and gives log p of the next.

    Rows of one sentence stand together, equally many for each sentence, and are queries to the
    same keys. Given a shortlist of tokens, in order and without padding, the others have
    probability zero.
    """

    @torch.inference_mode()
    def __init__(
        self, model: Transformer, memory: Memory, shortlist: Int[Tensor, " listed"] | None = None
    ) -> None:
        self._prepared = prepare(model)
        self._source = SourceCache(model, memory, self._prepared.source_kv())
        self._output = OutputCache(model.config, memory)
        self._position = 0
        self._used_up: Tensor | None = None
        self._start_id, self._vocab_size = model.start_id, model.config.vocab_size
        self._shortlist = shortlist
        self._projection: tuple[PreparedDecoder, PreparedMatrix] | None = None
        """To the shortlist, and the decoder that it was made for."""

    @torch.inference_mode()
    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Append a token to each row (None: the start); log p of each token to come."""
        logits, nats = self._logits(tokens)
        log_p = logits.mul_(nats).log_softmax(dim=1)
        if self._shortlist is None:
            return log_p
        all_log_p = log_p.new_full((len(log_p), self._vocab_size), -torch.inf)
        return all_log_p.index_copy_(1, self._shortlist, log_p)

    @torch.inference_mode()
    def best(
        self, tokens: Int[Tensor, " N"] | None, k: int
    ) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
        """Append a token to each row; log p of the k likeliest to come, and which they are."""
        logits, nats = self._logits(tokens)
        log_p, token = likeliest(logits, k, nats)
        return log_p, token if self._shortlist is None else self._shortlist[token]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows; sentences of which none is left are forgotten."""
        n_sentences, width = self._output.n_sentences, self._output.width
        if rows.shape[0] != n_sentences * width or width == 1:
            # Once a sentence has several rows, it keeps as many: then nobody has to be counted.
            sentences = rows.unique_consecutive() if width == 1 else rows[::width] // width
            if len(sentences) < n_sentences:
                self._source.keep(sentences)
            self._output.keep(sentences, len(rows) // len(sentences))
        self._output.select(rows)

    def _logits(self, tokens: Int[Tensor, " N"] | None) -> tuple[Float[Tensor, "N listed"], float]:
        """The logits, and how many nats a unit of them is worth."""
        y = self._start() if tokens is None else self._embed(tokens)
        decoder = self._prepared.decoder(y.shape[0])
        source = self._source.layers(decoder.make)
        norms = self._prepared.decoder_norms
        stream = _enter(y, norms.first)
        layers = map(StepLayer, decoder.layers, self._output.append(), source)
        for layer, of_layer in zip(layers, norms.layers, strict=True):
            stream = decoder_layer(stream, layer, of_layer, STEP)
        self._position += 1
        # The last step's logits give way only now: memory that lies free for as long as the layers
        # take goes back to the system, and to get it anew costs as much as a layer.
        self._used_up = None
        self._used_up = logits = self._project(decoder, stream.h).float()
        return logits, decoder.nats

    def _project(
        self, decoder: PreparedDecoder, y: Float[Tensor, "N D"]
    ) -> Float[Tensor, "N listed"]:
        """To the vocabulary, or to what of it is on the shortlist."""
        if self._shortlist is None:
            return decoder.projection(y)
        if self._projection is None or self._projection[0] is not decoder:
            self._projection = decoder, decoder.projection_to(self._shortlist)
        return self._projection[1](y)

    def _start(self) -> Float[Tensor, "N D"]:
        embedding = self._prepared.embedding
        shape, device = (self._output.n_sentences,), embedding.weight.device
        start: Tensor = embedding(torch.full(shape, self._start_id, device=device))
        return start + self._prepared.position(0)

    def _embed(self, tokens: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """Padding, the one token that embeds otherwise, is never appended."""
        embedding = self._prepared.embedding
        position = self._prepared.position(self._position)
        return torch.add(position, torch.embedding(embedding.weight, tokens), alpha=embedding.scale)


class StepLayer(NamedTuple):
    """One layer in one step."""

    weights: PreparedDecoderLayer
    cache: LayerCache
    source: LayerSource


class NativeStepOperations:
    """The operations of the decoder for one new token per row."""

    def self_attention(self, h: Float[Tensor, "N D"], layer: StepLayer) -> Product:
        """Attention to the tokens so far, whose keys and values are cached."""
        qkv, q, kv = layer.cache.projected
        layer.weights.qkv.into(qkv, h)
        layer.cache.new.copy_(kv)
        heads = layer.cache.seen.attend(q, layer.weights.scale)
        return Product(heads, layer.weights.attention_out)

    def source_attention(self, h: Float[Tensor, "N D"], layer: StepLayer) -> Product:
        """Attention to the source, whose keys and values never change."""
        return layer.source.attend(h, layer.weights)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: StepLayer) -> Product:
        """Equation (2)."""
        return _feed_forward(h, layer.weights)

    add_norm = staticmethod(_add_norm)


STEP = NativeStepOperations()

WORTH_IT = 2**16
"""Above this many logits the cost is memory traffic; below it, the overhead of each operation."""


def likeliest(
    logits: Float[Tensor, "N V"], k: int, nats: float
) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """Log p of the k likeliest tokens of each row, or of all of fewer, and which they are.

    Args:
        logits: Used up.
        k: How many.
        nats: What a unit of the logits is worth.
    """
    if logits.numel() < WORTH_IT:
        return logits.mul_(nats).log_softmax(dim=1).topk(min(k, logits.shape[1]), dim=1)
    top, token = largest(logits, k)
    return (top - log_sum_(logits, top[:, :1], nats)).mul_(nats), token


def largest(x: Float[Tensor, "N V"], k: int) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """`x.topk(k)`: the k largest numbers of each row, or all of fewer, and their places.

    They lie in the k blocks that have the largest maxima. Finding those takes a pass that only
    compares, which topk over a whole row is four times as long about.
    """
    n_rows, vocab_size = x.shape
    k, block = min(k, vocab_size), block_size(vocab_size)
    n_blocks = vocab_size // block
    if k >= n_blocks:
        return x.topk(k, dim=1)
    chosen = x.view(n_rows, n_blocks, block).amax(dim=2).topk(k, dim=1, sorted=False).indices
    first = torch.arange(0, n_rows * n_blocks, n_blocks, device=x.device)
    candidates = x.view(-1, block).index_select(0, (chosen + first[:, None]).flatten())
    values, place = candidates.view(n_rows, k * block).topk(k, dim=1)
    if k == 1:
        return values, torch.add(place, chosen, alpha=block)
    block_of = chosen.gather(1, place // block)
    return values, torch.add(place % block, block_of, alpha=block)


@lru_cache
def block_size(vocab_size: int) -> int:
    """The divisor of `vocab_size` nearest to 64; all of it, and so no blocks, if there is none."""
    divisors = (size for size in range(32, 257) if vocab_size % size == 0)
    return min(divisors, key=lambda size: abs(size - 64), default=vocab_size)


def log_sum_(
    x: Float[Tensor, "N V"], maximum: Float[Tensor, "N 1"], nats: float
) -> Float[Tensor, "N 1"]:
    """The logarithm of the sum of each row's powers, given its largest number. `x` is used up.

    Natural powers and logarithm if a unit is one nat; of two, if it is log 2.
    """
    x.sub_(maximum)
    if nats == 1.0:
        return x.exp_().sum(dim=1, keepdim=True).log_().add_(maximum)
    return x.exp2_().sum(dim=1, keepdim=True).log2_().add_(maximum)
