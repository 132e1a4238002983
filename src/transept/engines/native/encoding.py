"""The encoder where nothing is trained: the states of `Transformer.encode`, sooner on a CPU."""

import torch
from torch.nn import functional as F

from transept.engines.native.prepared import PreparedLayer, prepare
from transept.model.packing import Band, Layout, visible
from transept.model.transformer import Memory, Transformer
from transept.shapes import Bool, Float, Int, Tensor


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
    x = model.source_embedding(source.ids) + model.source_positions(layout)
    prepared = prepare(model)
    for layer in prepared.encoder_layers():
        x = _layer(x, layer, layout, mask)
    return Memory(prepared.encoder_norm(x), layout)


def _layer(
    x: Float[Tensor, "N D"],
    layer: PreparedLayer,
    layout: Layout,
    mask: Bool[Tensor, "B 1 S S"] | None,
) -> Float[Tensor, "N D"]:
    """One encoder layer. `x` is used up."""
    qkv = layout.apart(layer.qkv(layer.before[0](x)))
    heads = qkv.view(*qkv.shape[:2], 3 * layer.n_heads, -1).transpose(1, 2)
    q, k, v = heads.chunk(3, dim=1)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=layer.scale)
    together = layout.together(out.transpose(1, 2).flatten(2))
    x = layer.after[0](layer.attention_out.onto(x, together))
    return layer.feed_forward(x)
