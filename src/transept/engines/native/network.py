"""The encoder, the decoder with a key/value cache, and the selection of the likeliest tokens.

`Transformer.decode` recomputes every position at each step. Here, each layer caches the keys and
values of the previous positions and of the source. Parity tests compare the two, and `encode` with
`Transformer.encode`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch.nn import functional as F

from transept.engines.native.cache import (
    LayerCache,
    LayerSource,
    OutputCache,
    SourceCache,
    additive_mask,
    attend,
)
from transept.engines.native.weights import (
    PreparedDecoder,
    PreparedDecoderLayer,
    PreparedLayer,
    PreparedMatrix,
    ProductPlan,
    prepare,
)
from transept.engines.program import Norm, Product, ResidualStream, decoder_layer, encoder_layer
from transept.model.packing import Band, Blocks, Layout, self_mask
from transept.model.transformer import Memory, Transformer
from transept.runtime.products import convenient
from transept.shapes import Float, Int, Tensor


def _enter(x: Float[Tensor, "N D"], first: Norm | None) -> ResidualStream:
    """The stream before the first sub-layer."""
    if first is None:
        return ResidualStream(x, x)
    normed = torch.layer_norm(x, first.shape, first.weight, first.bias, first.epsilon)
    return ResidualStream(x, normed)


def _feed_forward(h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
    return Product(layer.activation(layer.inner(h)), layer.outer)


def _add_norm(stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
    """Add y to the stream, fused with the matrix product, and normalize. Overwrites `stream.x`."""
    summed = y.matrix.onto(stream.x, y.inner)
    normed = torch.layer_norm(summed, norm.shape, norm.weight, norm.bias, norm.epsilon)
    return norm.stream(summed, normed)


@torch.inference_mode()
def encode(
    model: Transformer, source_ids: Int[Tensor, "B S"], plan: ProductPlan | None = None
) -> Memory:
    """Run the encoder on padded ids. On a CPU, padding is removed and prepared weights are used."""
    if not source_ids.is_cpu:
        return model.encode(source_ids)
    source = model.source_tokens(source_ids)
    is_padded = bool((source.layout.segments == 0).any())
    if is_padded:
        source = source.without_padding(convenient)
    layout, band = source.layout, model.encoder.band
    all_visible = not is_padded and band == Band()
    prepared = prepare(model, plan)
    x = model.source_embedding(source.ids) + model.source_positions(layout)
    mask = None if all_visible else self_mask(layout, band)
    if isinstance(mask, Tensor):
        mask = additive_mask(~mask, x)[:, None]
    ops = NativeEncoderOperations(layout, mask)
    stream = _enter(x, prepared.encoder_norms.first)
    for layer, norms in zip(prepared.encoder_layers(), prepared.encoder_norms.layers, strict=True):
        stream = encoder_layer(stream, layer, norms, ops)
    return Memory(stream.h, layout)


@dataclass(frozen=True, slots=True)
class NativeEncoderOperations:
    """The operations of the encoder over one batch."""

    layout: Layout
    mask: Float[Tensor, "B 1 S S"] | Blocks | None
    """0 where a token may attend, else −∞. None: every token attends to every other one."""

    def self_attention(self, h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
        """Equation (1) for all heads."""
        qkv = self.layout.to_rows(layer.qkv(h))
        heads = qkv.view(*qkv.shape[:2], 3 * layer.n_heads, -1).transpose(1, 2)
        q, k, v = heads.chunk(3, dim=1)

        def in_block(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, _: float) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, mask[:, None], scale=layer.scale)

        if isinstance(self.mask, Blocks):
            out = self.mask.attend(in_block, q, k, v)
        else:
            out = attend(q, k, v, self.mask, layer.scale)
        return Product(self.layout.to_flat(out.transpose(1, 2).flatten(2)), layer.attention_out)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
        """Equation (2)."""
        return _feed_forward(h, layer)

    add_norm = staticmethod(_add_norm)


class IncrementalDecoder:
    """A step for searches: appends a token to each row and returns log p of the next.

    The rows of one sentence are adjacent, the same number for each sentence, and are queries to the
    same keys. With a shortlist, sorted and without padding, all other tokens have probability zero.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: Transformer,
        memory: Memory,
        shortlist: Int[Tensor, " listed"] | None = None,
        plan: ProductPlan | None = None,
    ) -> None:
        self._prepared = prepare(model, plan)
        self._source = SourceCache(model, memory, self._prepared.source_kv())
        self._output = OutputCache(model.config, len(model.decoder.layers), memory)
        self._position = 0
        self._last_logits: Tensor | None = None
        self._start_id, self._vocab_size = model.start_id, model.config.vocab_size
        self._shortlist = shortlist
        self._projection: tuple[PreparedDecoder, PreparedMatrix] | None = None
        """The projection to the shortlist, and the decoder that it belongs to."""

    @torch.inference_mode()
    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Append a token to each row (None: at the start); return log p of every next token."""
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
        """Append a token to each row; return log p and ids of the k likeliest next tokens."""
        logits, nats = self._logits(tokens)
        log_p, token = likeliest(logits, k, nats)
        return log_p, token if self._shortlist is None else self._shortlist[token]

    @torch.inference_mode()
    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Continue with these rows. Sentences without rows are removed."""
        n_sentences, width = self._output.n_sentences, self._output.width
        if rows.shape[0] != n_sentences * width or width == 1:
            # Once a sentence has several rows, their number stays the same: no need to count.
            sentences = rows.unique_consecutive() if width == 1 else rows[::width] // width
            if len(sentences) < n_sentences:
                self._source.keep(sentences)
            self._output.keep(sentences, len(rows) // len(sentences))
        self._output.select(rows)

    def _logits(self, tokens: Int[Tensor, " N"] | None) -> tuple[Float[Tensor, "N listed"], float]:
        """The logits, and the value of their unit in nats."""
        y = self._start() if tokens is None else self._embed(tokens)
        decoder = self._prepared.decoder(y.shape[0])
        source = self._source.layers(decoder.make)
        norms = self._prepared.decoder_norms
        stream = _enter(y, norms.first)
        layers = map(StepLayer, decoder.layers, self._output.append(), source)
        for layer, of_layer in zip(layers, norms.layers, strict=True):
            stream = decoder_layer(stream, layer, of_layer, STEP)
        self._position += 1
        # Free the logits of the last step only now: if the memory were free while the layers run,
        # it would return to the system, and allocating it again takes as long as a layer.
        self._last_logits = None
        self._last_logits = logits = self._project(decoder, stream.h).float()
        return logits, decoder.nats

    def _project(
        self, decoder: PreparedDecoder, y: Float[Tensor, "N D"]
    ) -> Float[Tensor, "N listed"]:
        """Project to the vocabulary, or to the shortlist."""
        if self._shortlist is None:
            return decoder.logits(y)
        if self._projection is None or self._projection[0] is not decoder:
            self._projection = decoder, decoder.projection_to(self._shortlist)
        return self._projection[1](y)

    def _start(self) -> Float[Tensor, "N D"]:
        embedding = self._prepared.embedding
        shape, device = (self._output.n_sentences,), embedding.weight.device
        start: Tensor = embedding(torch.full(shape, self._start_id, device=device))
        return start + self._prepared.position(0)

    def _embed(self, tokens: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """Embed tokens, without a special case for padding, which is never appended."""
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
        """Attention to the previous tokens, whose keys and values are cached."""
        qkv, q, kv = layer.cache.buffer
        layer.weights.qkv.into(qkv, h)
        layer.cache.new.copy_(kv)
        heads = layer.cache.past.attend(q, layer.weights.scale)
        return Product(heads, layer.weights.attention_out)

    def source_attention(self, h: Float[Tensor, "N D"], layer: StepLayer) -> Product:
        """Attention to the source, whose keys and values never change."""
        return layer.source.attend(h, layer.weights)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: StepLayer) -> Product:
        """Equation (2)."""
        return _feed_forward(h, layer.weights)

    add_norm = staticmethod(_add_norm)


STEP = NativeStepOperations()

BLOCKWISE_LOGITS = 2**16
"""Above this many logits, memory traffic dominates; below it, the overhead of each operation."""


def likeliest(
    logits: Float[Tensor, "N V"], k: int, nats: float
) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """Log p and ids of the k likeliest tokens of each row, or of all if there are fewer.

    Args:
        logits: The logits. They are overwritten.
        k: The number of tokens.
        nats: The unit of the logits, in nats.
    """
    if logits.numel() < BLOCKWISE_LOGITS:
        return logits.mul_(nats).log_softmax(dim=1).topk(min(k, logits.shape[1]), dim=1)
    top, token = largest(logits, k)
    return (top - log_sum_(logits, top[:, :1], nats)).mul_(nats), token


def largest(x: Float[Tensor, "N V"], k: int) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
    """`x.topk(k)`: the k largest values of each row, or all if there are fewer, and their indices.

    They are in the k blocks with the largest maxima. Finding these blocks only takes comparisons; a
    topk over whole rows takes four times as long.
    """
    n_rows, vocab_size = x.shape
    k, block = min(k, vocab_size), block_size(vocab_size)
    n_blocks = vocab_size // block
    if k >= n_blocks:
        return x.topk(k, dim=1)
    chosen = x.view(n_rows, n_blocks, block).amax(dim=2).topk(k, dim=1, sorted=False).indices
    first = torch.arange(0, n_rows * n_blocks, n_blocks, device=x.device)
    candidates = x.view(-1, block).index_select(0, (chosen + first[:, None]).flatten())
    values, index = candidates.view(n_rows, k * block).topk(k, dim=1)
    if k == 1:
        return values, torch.add(index, chosen, alpha=block)
    block_of = chosen.gather(1, index // block)
    return values, torch.add(index % block, block_of, alpha=block)


@lru_cache
def block_size(vocab_size: int) -> int:
    """The divisor of `vocab_size` closest to 64; `vocab_size` itself if there is none."""
    divisors = (size for size in range(32, 257) if vocab_size % size == 0)
    return min(divisors, key=lambda size: abs(size - 64), default=vocab_size)


def log_sum_(
    x: Float[Tensor, "N V"], maximum: Float[Tensor, "N 1"], nats: float
) -> Float[Tensor, "N 1"]:
    """Log Σ exp of each row, given its maximum, in units of `nats`. `x` is overwritten.

    Uses exp and log if the unit is one nat, exp2 and log2 if it is log 2.
    """
    x.sub_(maximum)
    if nats == 1.0:
        return x.exp_().sum(dim=1, keepdim=True).log_().add_(maximum)
    return x.exp2_().sum(dim=1, keepdim=True).log2_().add_(maximum)
