"""Converts weights between HF's MarianMT and our network, which compute the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.exc import InvalidCxxCompiler
from transformers import MarianConfig, MarianMTModel

from transept import ModelConfig, Transformer
from transept.formats.huggingface_writer import weights
from transept.model.positions import sinusoids
from transept.text.tokenizer import EOS_ID

PAD = 0
PAPER_DROPOUT = {"attention_dropout": 0.0, "activation_dropout": 0.0}
"""The paper has no other dropout."""


def sized_marian(config: ModelConfig, **others: Any) -> MarianMTModel:
    """MarianMT with the size of our network; all other settings are defaults or `others`."""
    settings = {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.n_layers,
        "decoder_layers": config.n_layers,
        "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": "relu",
        "dropout": config.dropout,
        "scale_embedding": True,
        "pad_token_id": PAD,
        "eos_token_id": EOS_ID,
        "decoder_start_token_id": PAD,
        "forced_eos_token_id": None,
    }
    return MarianMTModel(MarianConfig(**settings | others))


def to_marian(model: Transformer, eos_id: int | None = None, **others: Any) -> MarianMTModel:
    """Our weights in MarianMT. Biases that we do not have are zero. Outputs end at `eos_id`."""
    config = model.config
    marian = sized_marian(config, eos_token_id=eos_id, **others)
    marian = marian.eval().to(model.projection.weight.device)
    marian.generation_config.eos_token_id = eos_id
    marian.generation_config.forced_eos_token_id = None
    missing, unexpected = marian.load_state_dict(weights(model), strict=False)
    assert not unexpected
    assert all("embed_" in name or "lm_head" in name for name in missing)
    marian.tie_weights()
    return marian


def can_compile() -> bool:
    """Whether torch.compile finds a C++ compiler. If not, print that it is omitted."""
    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        print("torch.compile is omitted, because no C++ compiler is installed")
        return False
    return True


def positions(length: int, d_model: int) -> Tensor:
    return sinusoids(torch.arange(length), d_model).float()


# --- training MarianMT -----------------------------------------------------------------------


def new_marian(config: ModelConfig) -> MarianMTModel:
    """An untrained MarianMT with the size of our network.

    Its sinusoids are interleaved as in the paper, not in two halves, and its start token is BOS.
    Neither changes its capacity, and both allow our network to use its weights.
    """
    marian = sized_marian(config, **PAPER_DROPOUT, decoder_start_token_id=config.bos_id)
    with torch.no_grad():
        for stack in (marian.model.encoder, marian.model.decoder):
            length = len(stack.embed_positions.weight)
            stack.embed_positions.weight.copy_(positions(length, config.d_model))
    return marian


def like_marian(config: ModelConfig) -> ModelConfig:
    """Our network with MarianMT's additions to the paper."""
    return replace(config, attention_bias=True, decoder_start="token")


def from_marian(weights: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """MarianMT's weights with our names, for a network of `like_marian`."""
    ours = {"target_embedding.weight": weights["model.shared.weight"]}
    for stack in ("encoder", "decoder"):
        for layer in range(config.n_layers):
            theirs, here = f"model.{stack}.layers.{layer}", f"{stack}.layers.{layer}"
            attentions = {"self_attn": "self_attention"}
            if stack == "decoder":
                attentions["encoder_attn"] = "source_attention"
            norms = [*(f"{name}_layer_norm" for name in attentions), "final_layer_norm"]
            for kind in ("weight", "bias"):
                for old, new in attentions.items():
                    parts = [weights[f"{theirs}.{old}.{name}_proj.{kind}"] for name in "qkv"]
                    ours[f"{here}.{new}.w_qkv.{kind}"] = torch.cat(parts)
                    ours[f"{here}.{new}.w_o.{kind}"] = weights[f"{theirs}.{old}.out_proj.{kind}"]
                for number in (1, 2):
                    name = f"{here}.feed_forward.w_{number}.{kind}"
                    ours[name] = weights[f"{theirs}.fc{number}.{kind}"]
                for number, norm in enumerate(norms):
                    name = f"{here}.residuals.{number}.norm.{kind}"
                    ours[name] = weights[f"{theirs}.{norm}.{kind}"]
    return ours
