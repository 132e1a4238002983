"""Write MarianMT directories for Hugging Face's `AutoModelForSeq2SeqLM` and `MarianTokenizer`.

MarianMT has the paper's network with all sines of the positional encoding before all cosines, so
the dimensions of the residual stream are put into that order. The rest is a change of names.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save_file

from transept.errors import ConfigError, Problem
from transept.formats.foreign import EXCLUDED, interleaved
from transept.formats.huggingface_reader import CONFIG, SAFETENSORS, TARGET_VOCABULARY, VOCABULARY
from transept.model.attention import MultiHeadAttention, require_equation_1
from transept.model.config import ModelConfig
from transept.model.layers import Residual
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Tensor
from transept.text.tokenizer import EOS_ID, PAD_ID, Tokenizer

N_POSITIONS = 1024


def obstacles(config: ModelConfig) -> list[Problem]:
    """What MarianMT cannot express of a network."""
    wrong: Mapping[str, tuple[bool, str]] = {
        "norm": (config.norm != "post", "is 'pre': MarianMT has post-norm only"),
        "positions": (
            config.positions != "sinusoidal",
            "are learned: MarianMT has sinusoidal ones only",
        ),
        "d_k": (
            config.d_k * config.n_heads != config.d_model or config.d_v != config.d_k,
            "and d_v must be d_model / n_heads",
        ),
        "encoder_window": (config.encoder_window is not None, "restricts attention"),
        "decoder_window": (config.decoder_window is not None, "restricts attention"),
    }
    return [Problem(f"model.{key}", what) for key, (is_wrong, what) in wrong.items() if is_wrong]


def write_marian(model: Transformer, source: Tokenizer, target: Tokenizer, directory: Path) -> None:
    """Write all files into an existing directory."""
    if problems := obstacles(model.config):
        raise ConfigError(problems)
    require_equation_1(model, "MarianMT")
    tensors = weights(model)
    save_file({name: one.contiguous() for name, one in tensors.items()}, directory / SAFETENSORS)
    write_settings(model.config, source, target, directory)


def write_settings(
    config: ModelConfig, source: Tokenizer, target: Tokenizer, directory: Path
) -> None:
    """Write the configuration and the vocabularies."""
    is_shared = config.tied_embeddings == "three-way"
    vocabularies = [_table(tokenizer) for tokenizer in (source, target)]
    has_two = vocabularies[0] != vocabularies[1]
    pad, eos, unk = target.pieces_of(range(3))
    files = {
        CONFIG: _config(config, is_shared),
        "generation_config.json": _generation(config),
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            "model_max_length": N_POSITIONS,
            "separate_vocabs": has_two,
            "pad_token": pad,
            "eos_token": eos,
            "unk_token": unk,
        },
        VOCABULARY: vocabularies[0],
    }
    if has_two:
        files[TARGET_VOCABULARY] = vocabularies[1]
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        (directory / name).write_text(text, encoding="utf-8")
    for name, tokenizer in (("source.spm", source), ("target.spm", target)):
        (directory / name).write_bytes(tokenizer.model)


def weights(model: Transformer) -> dict[str, Tensor]:
    """The weights by the names of MarianMT, with the residual stream in its order."""
    config = model.config
    order = torch.tensor(interleaved(config.d_model)).argsort()
    bias: Tensor | None = model.projection.bias
    logits = torch.zeros(1, config.vocab_size) if bias is None else bias.detach()[None].clone()
    logits[0, config.pad_id] = EXCLUDED
    found = {"final_logits_bias": logits}
    embeddings = [
        _without_padding(one.weight, config.pad_id)[:, order]
        for one in (model.source_embedding, model.target_embedding)
    ]
    if config.tied_embeddings == "three-way":
        found["model.shared.weight"] = embeddings[1]
    else:
        found["model.encoder.embed_tokens.weight"] = embeddings[0]
        found["model.decoder.embed_tokens.weight"] = embeddings[1]
        found["lm_head.weight"] = _without_padding(model.projection.weight, config.pad_id)[:, order]
    stacks: Mapping[str, Sequence[EncoderLayer | DecoderLayer]] = {
        "encoder": model.encoder.stack,
        "decoder": model.decoder.stack,
    }
    for side, stack in stacks.items():
        for number, layer in enumerate(stack):
            for name, tensor in _layer(layer, order).items():
                found[f"model.{side}.layers.{number}.{name}"] = tensor
    return found


def _without_padding(weight: Tensor, pad_id: int) -> Tensor:
    """A copy whose row of padding, which the network reads as zero, is zero."""
    copy = weight.detach().clone()
    copy[pad_id] = 0
    return copy


def _layer(layer: EncoderLayer | DecoderLayer, order: Tensor) -> dict[str, Tensor]:
    found = {}
    attentions = {"self_attn": layer.self_attention}
    if isinstance(layer, DecoderLayer):
        attentions["encoder_attn"] = layer.source_attention
    for name, attention in attentions.items():
        for part, tensor in _attention(attention, order).items():
            found[f"{name}.{part}"] = tensor
    norms = [cast(Residual, residual).norm for residual in layer.residuals]
    places = [*(f"{name}_layer_norm" for name in attentions), "final_layer_norm"]
    for place, norm in zip(places, norms, strict=True):
        found[f"{place}.weight"] = norm.weight.detach()[order]
        found[f"{place}.bias"] = norm.bias.detach()[order]
    inner, outer = layer.feed_forward.w_1, layer.feed_forward.w_2
    found["fc1.weight"], found["fc1.bias"] = inner.weight.detach()[:, order], inner.bias.detach()
    found["fc2.weight"] = outer.weight.detach()[order]
    found["fc2.bias"] = outer.bias.detach()[order]
    return found


def _attention(attention: MultiHeadAttention, order: Tensor) -> dict[str, Tensor]:
    linear, output = attention.w_qkv, attention.w_o
    biases: Tensor | None = linear.bias
    out_bias: Tensor | None = output.bias
    d_model = output.out_features
    bias = torch.zeros(linear.out_features) if biases is None else biases.detach()
    found = {
        "out_proj.weight": output.weight.detach()[order],
        "out_proj.bias": torch.zeros(d_model) if out_bias is None else out_bias.detach()[order],
    }
    parts = attention.split(linear.weight.detach().T)
    for name, weight, part in zip("qkv", parts, attention.split(bias), strict=True):
        found[f"{name}_proj.weight"] = weight.T[:, order]
        found[f"{name}_proj.bias"] = part.clone()
    return found


def _table(tokenizer: Tokenizer) -> dict[str, int]:
    return {piece: i for i, piece in enumerate(tokenizer.pieces_of(range(tokenizer.vocab_size)))}


def _start(config: ModelConfig) -> int:
    return config.pad_id if config.decoder_start == "zero" else config.bos_id


def _config(config: ModelConfig, is_shared: bool) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "vocab_size": config.source_vocab_size or config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.n_layers,
        "decoder_layers": config.decoder_depth,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "max_position_embeddings": N_POSITIONS,
        "static_position_embeddings": True,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": is_shared,
        "tie_word_embeddings": is_shared,
        "pad_token_id": PAD_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "decoder_start_token_id": _start(config),
        "dtype": "float32",
    }


def _generation(config: ModelConfig) -> dict[str, Any]:
    return {
        "num_beams": 4,
        "max_length": 512,
        "pad_token_id": PAD_ID,
        "eos_token_id": EOS_ID,
        "forced_eos_token_id": EOS_ID,
        "decoder_start_token_id": _start(config),
        "bad_words_ids": [[PAD_ID]],
    }
