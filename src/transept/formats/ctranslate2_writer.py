"""Export a network to CTranslate2: the same weights in another engine's layout.

CTranslate2 supports the paper's network and most of its variants. Unsupported variants are
rejected, never approximated. CTranslate2's tokens are strings. Each id is named by its subword, so
any program that splits text with the same sentencepiece model can use the export.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import nn

from transept.errors import ConfigError, Problem
from transept.model.attention import MultiHeadAttention, require_equation_1
from transept.model.config import ModelConfig
from transept.model.positions import Positions, SinusoidalPositions, sinusoids
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Float, Tensor
from transept.text.symbols import Vocabulary
from transept.text.tokenizer import BOS_ID, EOS_ID, UNK_ID, Tokenizer

Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16"
]
"""How weights are stored. CTranslate2 also computes in this type if the machine supports it."""

N_POSITIONS = 1024
"""Rows of the positional encoding matrix. CTranslate2 stores it instead of computing it."""


class Names(NamedTuple):
    """The strings for the ids, in order."""

    source: Sequence[str]
    target: Sequence[str]

    @classmethod
    def of(cls, source: Vocabulary, target: Vocabulary) -> "Names":
        """The entries of two vocabularies: subwords or symbols."""
        return cls(_entries(source), _entries(target))


def _entries(vocabulary: Vocabulary) -> list[str]:
    if isinstance(vocabulary, Tokenizer):
        return vocabulary.pieces_of(range(vocabulary.vocab_size))
    return list(vocabulary.ids)


def is_installed() -> bool:
    """Whether CTranslate2 is installed."""
    return find_spec("ctranslate2") is not None


def require() -> None:
    """Raise an error if CTranslate2 is not installed."""
    if not is_installed():
        raise ConfigError("CTranslate2 is not installed: pip install 'transept[ctranslate2]'")


def obstacles(config: ModelConfig) -> list[Problem]:
    """The settings of a network that CTranslate2 does not support."""
    wrong: Mapping[str, tuple[bool, str]] = {
        "d_v": (
            config.d_v != config.d_k,
            f"is {config.d_v} and d_k is {config.d_k}: CTranslate2 supports one width for both",
        ),
        "encoder_window": (
            config.encoder_window is not None,
            "restricts attention to a window, which CTranslate2 does not support",
        ),
        "decoder_window": (
            config.decoder_window is not None,
            "restricts attention to a window, which CTranslate2 does not support",
        ),
    }
    return [Problem(f"model.{key}", what) for key, (is_wrong, what) in wrong.items() if is_wrong]


def save(
    model: Transformer,
    names: Names,
    directory: Path,
    *,
    quantization: Quantization = "float32",
    n_positions: int = N_POSITIONS,
    eos_id: int = EOS_ID,
    add_source_eos: bool = False,
) -> None:
    """Write a network into an existing directory, for `ctranslate2.Translator` to open.

    Args:
        model: The network.
        names: The strings for its ids.
        directory: The output directory.
        quantization: How to store the weights.
        n_positions: The maximum length of inputs and outputs, if positions are sinusoidal.
        eos_id: The id of the end symbol.
        add_source_eos: Whether CTranslate2 appends the end symbol to each source sentence.
    """
    require()
    if problems := obstacles(model.config):
        raise ConfigError(problems)
    require_equation_1(model, "CTranslate2")
    assert quantization in get_args(Quantization)
    spec = _specification(model, n_positions)
    spec.register_source_vocabulary(list(names.source))
    spec.register_target_vocabulary(list(names.target))
    spec.config.unk_token = names.target[UNK_ID]
    spec.config.bos_token = names.target[BOS_ID]
    spec.config.eos_token = names.target[eos_id]
    spec.config.add_source_eos = add_source_eos
    # If the decoder starts with a zero vector, this token has no effect.
    spec.config.decoder_start_token = names.target[model.config.bos_id]
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    spec.save(str(directory))


def _specification(model: Transformer, n_positions: int) -> Any:
    from ctranslate2.specs import TransformerSpec, common_spec, transformer_spec

    config = model.config
    activations = {"relu": common_spec.Activation.RELU, "swish": common_spec.Activation.SWISH}
    shape = {
        "num_heads": config.n_heads,
        "pre_norm": config.norm == "pre",
        "activation": activations[config.activation],
        "head_dim": config.d_k if config.d_k * config.n_heads != config.d_model else None,
    }
    encoder = transformer_spec.TransformerEncoderSpec(config.n_layers, **shape)
    decoder = transformer_spec.TransformerDecoderSpec(config.decoder_depth, **shape)
    decoder.start_from_zero_embedding = config.decoder_start == "zero"
    _fill_embeddings(encoder, decoder, model)
    for theirs, positions in ((encoder, model.source_positions), (decoder, model.target_positions)):
        theirs.position_encodings.encodings = _positions(positions, config.d_model, n_positions)
    _fill_stack(encoder, model.encoder.stack, model.encoder.norm)
    _fill_stack(decoder, model.decoder.stack, model.decoder.norm)
    return TransformerSpec(encoder, decoder)


def _fill_embeddings(encoder: Any, decoder: Any, model: Transformer) -> None:
    """Copy embeddings and projection. Padding has a zero embedding and is never output."""
    config = model.config
    for theirs, ours in (
        (encoder.embeddings[0], model.source_embedding),
        (decoder.embeddings, model.target_embedding),
    ):
        theirs.weight = _copy(ours.weight)
        theirs.weight[config.pad_id] = 0
    projection = _copy(model.projection.weight)
    projection[config.pad_id] = 0  # as in the embedding: both may be the same matrix
    decoder.projection.weight = projection
    decoder.projection.bias = _bias(model.projection)
    decoder.projection.bias[config.pad_id] = -torch.inf


def _positions(positions: Positions, d_model: int, n_positions: int) -> Float[Tensor, "L D"]:
    if isinstance(positions, SinusoidalPositions):
        return sinusoids(torch.arange(n_positions), d_model).float()
    return _copy(positions.weight)


def _fill_stack(theirs: Any, ours: Sequence[EncoderLayer | DecoderLayer], norm: nn.Module) -> None:
    for layer, source in zip(theirs.layer, ours, strict=True):
        _fill_layer(layer, source)
    if isinstance(norm, nn.LayerNorm):
        _fill_norm(theirs.layer_norm, norm)


def _fill_layer(theirs: Any, ours: EncoderLayer | DecoderLayer) -> None:
    norms = [one for one in ours.residuals.modules() if isinstance(one, nn.LayerNorm)]
    _fill_attention(theirs.self_attention, ours.self_attention, norms[0])
    if isinstance(ours, DecoderLayer):
        _fill_attention(theirs.attention, ours.source_attention, norms[1])
    for linear, source in (
        (theirs.ffn.linear_0, ours.feed_forward.w_1),
        (theirs.ffn.linear_1, ours.feed_forward.w_2),
    ):
        linear.weight, linear.bias = _copy(source.weight), _bias(source)
    _fill_norm(theirs.ffn.layer_norm, norms[-1])


def _fill_attention(theirs: Any, ours: MultiHeadAttention, norm: nn.LayerNorm) -> None:
    """Copy attention. CTranslate2 also joins Q, K and V, or K and V for source attention."""
    cut = [] if len(theirs.linear) == 2 else [ours.h_dk]
    parts = [*_split_linear(ours.w_qkv, cut), (_copy(ours.w_o.weight), _bias(ours.w_o))]
    for linear, (weight, bias) in zip(theirs.linear, parts, strict=True):
        linear.weight, linear.bias = weight, bias
    _fill_norm(theirs.layer_norm, norm)


def _split_linear(linear: nn.Linear, at: list[int]) -> list[tuple[Tensor, Tensor]]:
    weights = _copy(linear.weight).tensor_split(at)
    return list(zip(weights, _bias(linear).tensor_split(at), strict=True))


def _bias(linear: nn.Linear) -> Float[Tensor, " D"]:
    # mypy assumes that every Linear has a bias.
    bias: Tensor | None = linear.bias
    return torch.zeros(linear.out_features) if bias is None else _copy(bias)


def _fill_norm(theirs: Any, ours: nn.LayerNorm) -> None:
    theirs.gamma, theirs.beta = _copy(ours.weight), _copy(ours.bias)


def _copy(weight: Tensor) -> Tensor:
    """A copy, because CTranslate2 quantizes in place."""
    return weight.detach().clone()
