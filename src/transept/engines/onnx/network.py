"""Export a network to ONNX, with the file names, inputs and outputs of Hugging Face Optimum.

The layer program runs on a recorder, so its operations append nodes to a graph. As in the other
engines, the sentences of a batch share one flat axis N, except in attention. `graph` explains
the annotations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from transept.engines.onnx.graph import OnnxGraph
from transept.engines.program import (
    Norm,
    Product,
    ResidualStream,
    StackNorms,
    decoder_layer,
    encoder_layer,
)
from transept.errors import ConfigError, Problem
from transept.formats.foreign import EXCLUDED
from transept.model.attention import MultiHeadAttention, require_equation_1
from transept.model.config import ModelConfig
from transept.model.layers import Embedding
from transept.model.positions import LearnedPositions, Positions
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.runtime.storage import write_file
from transept.shapes import Bool, Float, Int, Tensor

ENCODER = "encoder_model.onnx"
DECODER = "decoder_model.onnx"
DECODER_WITH_PAST = "decoder_with_past_model.onnx"
DECODER_MERGED = "decoder_model_merged.onnx"
"""Both decoders in one graph. transformers.js requires it, and Optimum prefers it."""

START_ID = "decoder_start_token_id"
"""The decoder's first input id, in the metadata of each file."""

BATCH, SOURCE, TARGET = "batch_size", "encoder_sequence_length", "decoder_sequence_length"
PAST_SOURCE, PAST_TARGET = "encoder_sequence_length_out", "past_decoder_sequence_length"
ALL_TARGET = "total_decoder_sequence_length"


def is_installed() -> bool:
    """Whether ONNX and ONNX Runtime are installed."""
    return find_spec("onnx") is not None and find_spec("onnxruntime") is not None


def require() -> None:
    """Raise an error if ONNX or ONNX Runtime is not installed."""
    if not is_installed():
        raise ConfigError("onnx is not installed: pip install 'transept[onnx]'")


def obstacles(config: ModelConfig) -> list[Problem]:
    """The settings of a network that the exporter does not support."""
    what = "restricts attention to a window, which the ONNX exporter does not support"
    windows = ("encoder_window", "decoder_window")
    return [Problem(f"model.{key}", what) for key in windows if getattr(config, key) is not None]


def write_onnx(model: Transformer, directory: Path, *, int8: bool = False) -> None:
    """Write a network into an existing directory.

    Args:
        model: The network.
        directory: The output directory.
        int8: Whether to store matrices as 8-bit integers with one scale per row, with the same
            rounding as in transept's int8 models. Computation is in single precision.
    """
    require()
    if problems := obstacles(model.config):
        raise ConfigError(problems)
    require_equation_1(model, "the ONNX exporter")
    files: dict[str, Callable[[OnnxGraph, Transformer], None]] = {
        ENCODER: _record_encoder,
        DECODER: partial(_record_decoder, reads_source=True, reads_past=False),
        DECODER_WITH_PAST: partial(_record_decoder, reads_source=False, reads_past=True),
        DECODER_MERGED: partial(_record_decoder, reads_source=True, reads_past=True),
    }
    for name, record in files.items():
        graph = OnnxGraph("int8" if int8 else "fp32")
        record(graph, model)
        metadata = {START_ID: str(model.start_id)}
        write_file(directory / name, graph.as_file(name.removesuffix(".onnx"), metadata))


# --- the operations of the layer program -----------------------------------------------------


class KeysValues(NamedTuple):
    """The keys and values of an attention module."""

    key: Float[Tensor, "B H L Dk"]
    value: Float[Tensor, "B H L Dv"]


@dataclass(frozen=True, slots=True)
class OnnxLayer:
    """A layer and its cached keys and values."""

    name: str
    module: EncoderLayer | DecoderLayer
    past: KeysValues | None = None
    """Keys and values of the previous positions."""
    source: KeysValues | None = None


class OnnxLinear(NamedTuple):
    """The matrix of a `Product`."""

    name: str
    module: nn.Linear


@dataclass(frozen=True, slots=True)
class OnnxOperations:
    """The operations of encoder and decoder, which record nodes."""

    graph: OnnxGraph
    shape: Int[Tensor, " 2"]
    """The number of rows, and of tokens per row."""
    mask: Float[Tensor, "B 1 T L"] | None
    """Added to the scores of self-attention. None: every position is visible."""
    source_mask: Float[Tensor, "B 1 1 S"] | None = None
    present: list[KeysValues] = field(default_factory=list)
    """The keys and values of each layer's self-attention, including those of the past."""

    def self_attention(self, h: Float[Tensor, "N D"], layer: OnnxLayer) -> Product:
        """Equation (1) for all heads."""
        name, module = f"{layer.name}.self_attention", layer.module.self_attention
        qkv = self.graph.linear(h, f"{name}.w_qkv", module.w_qkv.weight, module.w_qkv.bias)
        widths = (module.d_k, module.d_k, module.d_v)
        q, *new = self.graph.heads(qkv, self.shape, module.n_heads, *widths)
        if layer.past is not None:
            pairs = zip(layer.past, new, strict=True)
            new = [self.graph.op("Concat", *pair, axis=2) for pair in pairs]
        self.present.append(KeysValues(*new))
        return self._attend(q, self.present[-1], self.mask, name, module)

    def source_attention(self, h: Float[Tensor, "N D"], layer: OnnxLayer) -> Product:
        """Equation (1) for all heads, with the keys and values of the source."""
        assert isinstance(layer.module, DecoderLayer)
        assert layer.source is not None
        name, module = f"{layer.name}.source_attention", layer.module.source_attention
        projected = self.graph.linear(h, f"{name}.w_q", *module.w_q)
        (q,) = self.graph.heads(projected, self.shape, module.n_heads, module.d_k)
        return self._attend(q, layer.source, self.source_mask, name, module)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: OnnxLayer) -> Product:
        """Equation (2)."""
        name, module = f"{layer.name}.feed_forward", layer.module.feed_forward
        inner = self.graph.linear(h, f"{name}.w_1", module.w_1.weight, module.w_1.bias)
        if module.activation is torch.relu_:
            active = self.graph.op("Relu", inner)
        else:
            active = self.graph.op("Mul", inner, self.graph.op("Sigmoid", inner))
        return Product(active, OnnxLinear(f"{name}.w_2", module.w_2))

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """Add y to the stream and normalize."""
        name, module = y.matrix
        product = self.graph.linear(y.inner, name, module.weight, module.bias)
        summed = self.graph.op("Add", stream.x, product)
        return norm.stream(summed, _normed(self.graph, summed, norm))

    def _attend(
        self,
        q: Float[Tensor, "B H T Dk"],
        kv: KeysValues,
        mask: Float[Tensor, "B 1 T L"] | None,
        name: str,
        module: MultiHeadAttention,
    ) -> Product:
        op, scale = self.graph.op, self.graph.constant(1 / math.sqrt(module.d_k), np.float32)
        scores = op("Mul", op("MatMul", q, op("Transpose", kv.key, perm=[0, 1, 3, 2])), scale)
        masked = scores if mask is None else op("Add", scores, mask)
        heads = op("MatMul", op("Softmax", masked, axis=-1), kv.value)
        rows = op("Transpose", heads, perm=[0, 2, 1, 3])
        flat = op("Reshape", rows, self.graph.constant([-1, module.h_dv]))
        return Product(flat, OnnxLinear(f"{name}.w_o", module.w_o))


def _normed(graph: OnnxGraph, x: Float[Tensor, "N D"], norm: Norm) -> Any:
    """LayerNorm(x)."""
    weights = [graph.vector(f"{x}.norm.{n}", getattr(norm, n)) for n in ("weight", "bias")]
    return graph.op("LayerNormalization", x, *weights, axis=-1, epsilon=norm.epsilon)


def _enter(graph: OnnxGraph, x: Float[Tensor, "N D"], first: Norm | None) -> ResidualStream:
    """The stream before the first sub-layer."""
    return ResidualStream(x, x if first is None else _normed(graph, x, first))


# --- masks -----------------------------------------------------------------------------------


def _additive(graph: OnnxGraph, visible: Tensor) -> Any:
    """A mask that is added to scores: 0 where attention is allowed, else a large negative number.

    It is finite, because the output for padding that sees nothing must not be NaN.
    """
    return graph.op("Where", visible, *(graph.constant(n, np.float32) for n in (0, EXCLUDED)))


def _source_mask(graph: OnnxGraph, mask: Int[Tensor, "B S"]) -> Any:
    """The mask of source positions, from an input that is 1 for tokens and 0 for padding."""
    visible = graph.op("Unsqueeze", graph.cast(mask, np.bool_), graph.constant([1, 2]))
    return _additive(graph, visible)


def _causal_mask(graph: OnnxGraph, queries: Int[Tensor, " T"], end: Int[Tensor, ""]) -> Any:
    """The mask of these queries for keys from 0 to `end` − 1."""
    keys = graph.range(graph.constant(0), end)
    column = graph.op("Unsqueeze", queries, graph.constant([1]))
    return _additive(graph, graph.op("LessOrEqual", keys, column))


# --- embedding and projection ----------------------------------------------------------------


def _embedded(
    graph: OnnxGraph,
    ids: Int[Tensor, "B L"],
    side: str,
    embedding: Embedding,
    positions: Positions,
    at: Int[Tensor, " L"],
) -> Any:
    """Scaled embeddings plus positional encodings, on a flat axis."""
    d_model = embedding.weight.shape[1]
    flat = graph.op("Reshape", ids, graph.constant([-1]))
    weight = _without_row(embedding.weight, embedding.pad_id)
    rows = graph.rows(flat, f"{side}_embedding", weight)
    scaled = graph.op("Mul", rows, graph.constant(embedding.scale, np.float32))
    encoding = _encoding(graph, f"{side}_positions", positions, at)
    x = graph.op("Add", _in_rows(graph, scaled, graph.op("Shape", ids), d_model), encoding)
    return graph.op("Reshape", x, graph.constant([-1, d_model]))


def _in_rows(graph: OnnxGraph, x: Float[Tensor, "N D"], shape: Int[Tensor, " 2"], d: int) -> Any:
    """Arrange flat tokens in rows `B L D`."""
    return graph.op("Reshape", x, graph.op("Concat", shape, graph.constant([d]), axis=0))


def _without_row(weight: Float[Tensor, "V D"], index: int) -> Float[Tensor, "V D"]:
    """A copy with zeros in one row. The vector of padding is zero."""
    copy = weight.detach().clone()
    copy[index] = 0
    return copy


def _encoding(graph: OnnxGraph, name: str, positions: Positions, at: Int[Tensor, " L"]) -> Any:
    """Positional encodings. Sinusoids are computed in double precision, as in `model.positions`."""
    if isinstance(positions, LearnedPositions):
        return graph.rows(at, name, positions.weight)
    pair = np.arange(positions.d_model) // 2
    period = graph.store("period", 10_000 ** (2 * pair / positions.d_model))
    # cos(x) = sin(x + π/2)
    phase = graph.store("phase", np.arange(positions.d_model) % 2 * math.pi / 2)
    column = graph.op("Unsqueeze", at, graph.constant([1]))
    angle = graph.op("Div", graph.cast(column, np.float64), period)
    return graph.cast(graph.op("Sin", graph.op("Add", angle, phase)), np.float32)


def _logits(graph: OnnxGraph, model: Transformer, h: Float[Tensor, "N D"]) -> Any:
    """The projection to the vocabulary. Padding is excluded: it is never output."""
    projection, pad_id = model.projection, model.config.pad_id
    is_tied = projection.weight is model.target_embedding.weight
    given: Tensor | None = projection.bias
    bias = torch.zeros(len(projection.weight)) if given is None else given.detach().clone()
    bias[pad_id] = EXCLUDED
    name = "target_embedding" if is_tied else "projection"
    return graph.linear(h, name, _without_row(projection.weight, pad_id), bias)


# --- the files -------------------------------------------------------------------------------


def _record_encoder(graph: OnnxGraph, model: Transformer) -> None:
    """Record the encoder."""
    ids = graph.input("input_ids", np.int64, BATCH, SOURCE)
    mask = graph.input("attention_mask", np.int64, BATCH, SOURCE)
    at = graph.range(graph.constant(0), graph.length(ids, 1))
    x = _embedded(graph, ids, "source", model.source_embedding, model.source_positions, at)
    ops = OnnxOperations(graph, graph.op("Shape", ids), _source_mask(graph, mask))
    norms, d_model = StackNorms(model.encoder), model.config.d_model
    stream = _enter(graph, x, norms.first)
    for number, module in enumerate(model.encoder.stack):
        layer = OnnxLayer(f"encoder.layers.{number}", module)
        stream = encoder_layer(stream, layer, norms.layers[number], ops)
    states = _in_rows(graph, stream.h, ops.shape, d_model)
    graph.output("last_hidden_state", states, BATCH, SOURCE, d_model)


def _record_decoder(
    graph: OnnxGraph, model: Transformer, *, reads_source: bool, reads_past: bool
) -> None:
    """Record a decoder.

    Args:
        graph: The graph.
        model: The network.
        reads_source: Whether the encoder's output is an input.
        reads_past: Whether cached keys and values are inputs.
    """
    length = TARGET if reads_source else 1
    mask = graph.input("encoder_attention_mask", np.int64, BATCH, SOURCE)
    ids = graph.input("input_ids", np.int64, BATCH, length)
    layers = _decoder_layers(graph, model, reads_source, reads_past)
    past = layers[0].past
    first = graph.constant(0) if past is None else graph.length(past.key, 2)
    end = graph.op("Add", first, graph.length(ids, 1))
    at = graph.range(first, end)
    # A single new token sees every position.
    causal = _causal_mask(graph, at, end) if reads_source else None
    ops = OnnxOperations(graph, graph.op("Shape", ids), causal, _source_mask(graph, mask))
    x = _embedded(graph, ids, "target", model.target_embedding, model.target_positions, at)
    norms, vocab_size = StackNorms(model.decoder), model.config.vocab_size
    stream = _enter(graph, x, norms.first)
    for layer, of_layer in zip(layers, norms.layers, strict=True):
        stream = decoder_layer(stream, layer, of_layer, ops)
    logits = _in_rows(graph, _logits(graph, model, stream.h), ops.shape, vocab_size)
    graph.output("logits", logits, BATCH, length, vocab_size)
    for number, layer in enumerate(layers):
        n_keys = ALL_TARGET if reads_past else TARGET
        _output_cache(graph, model.config, f"{number}.decoder", ops.present[number], n_keys)
        if reads_source and layer.source is not None:
            _output_cache(graph, model.config, f"{number}.encoder", layer.source, SOURCE)


def _decoder_layers(
    graph: OnnxGraph, model: Transformer, reads_source: bool, reads_past: bool
) -> list[OnnxLayer]:
    """Declare inputs for the encoder's output and for caches; return the layers with caches."""
    config, modules = model.config, model.decoder.stack
    states: Any = None
    past: list[KeysValues | None] = [None] * len(modules)
    source: list[KeysValues] = []
    if reads_source:
        states = graph.input("encoder_hidden_states", np.float32, BATCH, SOURCE, config.d_model)
    for number in range(len(modules) if reads_past else 0):
        past[number] = _input_cache(graph, config, f"{number}.decoder", PAST_TARGET)
        source.append(_input_cache(graph, config, f"{number}.encoder", PAST_SOURCE))
    if not reads_past:
        source = _source_caches(graph, model, states)
    elif reads_source:
        is_used = graph.input("use_cache_branch", np.bool_, 1)
        past = [cache and _if_used(graph, is_used, cache) for cache in past]
        compute = partial(_source_caches, model=model, states=states)
        chosen = graph.either(is_used, [*chain(*source)], lambda one: chain(*compute(one)))
        source = [KeysValues(*chosen[at : at + 2]) for at in range(0, len(chosen), 2)]
    names = [f"decoder.layers.{number}" for number in range(len(modules))]
    return [OnnxLayer(*one) for one in zip(names, modules, past, source, strict=True)]


def _input_cache(graph: OnnxGraph, config: ModelConfig, name: str, length: str) -> KeysValues:
    shape = (np.float32, BATCH, config.n_heads, length)
    key = graph.input(f"past_key_values.{name}.key", *shape, config.d_k)
    return KeysValues(key, graph.input(f"past_key_values.{name}.value", *shape, config.d_v))


def _output_cache(
    graph: OnnxGraph, config: ModelConfig, name: str, cache: KeysValues, length: str
) -> None:
    shape = (BATCH, config.n_heads, length)
    graph.output(f"present.{name}.key", cache.key, *shape, config.d_k)
    graph.output(f"present.{name}.value", cache.value, *shape, config.d_v)


def _if_used(graph: OnnxGraph, is_used: Bool[Tensor, " 1"], cache: KeysValues) -> KeysValues:
    """The cache, or an empty one. Some callers pass a placeholder of length 1 if it is not used."""
    end = graph.op("Mul", graph.cast(is_used, np.int64), graph.constant([2**31]))
    start, axis = graph.constant([0]), graph.constant([2])
    return KeysValues(*(graph.op("Slice", value, start, end, axis) for value in cache))


def _source_caches(
    graph: OnnxGraph, model: Transformer, states: Float[Tensor, "B S D"]
) -> list[KeysValues]:
    """The keys and values of the source for each layer of the decoder."""
    flat = graph.op("Reshape", states, graph.constant([-1, model.config.d_model]))
    shape, caches = graph.op("Shape", states, start=0, end=2), []
    for number, layer in enumerate(model.decoder.stack):
        module = layer.source_attention
        name = f"decoder.layers.{number}.source_attention.w_kv"
        kv = graph.linear(flat, name, *module.w_kv)
        caches.append(KeysValues(*graph.heads(kv, shape, module.n_heads, module.d_k, module.d_v)))
    return caches
