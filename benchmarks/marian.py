"""Converts weights between HF's MarianMT and our network, which compute the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from transept import ModelConfig, Transformer
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


def to_marian(model: Transformer, eos_id: int | None = None) -> MarianMTModel:
    """Our weights in MarianMT. Biases that we do not have are zero. Outputs end at `eos_id`."""
    config = model.config
    marian = sized_marian(config, eos_token_id=eos_id)
    marian = marian.eval().to(model.projection.weight.device)
    marian.generation_config.eos_token_id = eos_id
    marian.generation_config.forced_eos_token_id = None
    with torch.no_grad():
        for parameter in marian.parameters():
            parameter.zero_()
        marian.model.shared.weight.copy_(model.target_embedding.weight)
        marian.final_logits_bias[0, PAD] = -torch.inf
        for theirs, ours in (
            (marian.model.encoder, model.encoder),
            (marian.model.decoder, model.decoder),
        ):
            n_positions = len(theirs.embed_positions.weight)
            theirs.embed_positions.weight.copy_(positions(n_positions, config.d_model))
            for layer, source in zip(theirs.layers, ours.layers, strict=True):
                fill_marian_layer(layer, source)
    return marian


def fill_marian_layer(theirs: nn.Module, ours: nn.Module) -> None:
    attentions = [(theirs.self_attn, ours.self_attention)]
    norms = [theirs.self_attn_layer_norm]
    if hasattr(ours, "source_attention"):
        attentions.append((theirs.encoder_attn, ours.source_attention))
        norms.append(theirs.encoder_attn_layer_norm)
    for attention, source in attentions:
        for name, part in zip("qkv", source.split(source.w_qkv.weight.T), strict=True):
            attention.get_submodule(f"{name}_proj").weight.copy_(part.T)
        attention.out_proj.weight.copy_(source.w_o.weight)
    theirs.fc1.load_state_dict(ours.feed_forward.w_1.state_dict())
    theirs.fc2.load_state_dict(ours.feed_forward.w_2.state_dict())
    for norm, residual in zip([*norms, theirs.final_layer_norm], ours.residuals, strict=True):
        norm.load_state_dict(residual.norm.state_dict())


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
