"""Our weights in HF's MarianMT, which computes the same: the peer of the decoding benchmarks."""

import torch
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from transept import Transformer
from transept.model.positions import sinusoids

PAD = 0


def to_marian(model: Transformer, eos_id: int | None = None) -> MarianMTModel:
    """Our weights in MarianMT; the biases that we do not have are zero. It ends at `eos_id`."""
    config = model.config
    marian = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.n_layers,
            decoder_layers=config.n_layers,
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function="relu",
            scale_embedding=True,
            pad_token_id=PAD,
            eos_token_id=eos_id,
            decoder_start_token_id=PAD,
            forced_eos_token_id=None,
        )
    )
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
