"""The decoder with a key/value cache, one token at a time: same result, faster.

`Transformer.decode` computes every position again at each step. Here each layer keeps the keys and
values of the positions so far, and those of the source, which never change. Parity tests compare
the two.
"""

from typing import NamedTuple

import torch

from transept.engines.native import operations
from transept.engines.native.cache import LayerCache, OutputCache
from transept.engines.native.matrices import PreparedMatrix
from transept.engines.native.prepared import PreparedDecoder, PreparedDecoderLayer, prepare
from transept.engines.native.ranking import likeliest
from transept.engines.native.source import LayerSource, SourceCache
from transept.engines.program import Product, decoder_layer
from transept.model.transformer import Memory, Transformer
from transept.shapes import Float, Int, Tensor


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
        stream = operations.enter(y, norms.first)
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
        return operations.feed_forward(h, layer.weights)

    add_norm = staticmethod(operations.add_norm)


STEP = NativeStepOperations()
