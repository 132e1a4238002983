"""The encoder for inference: the states of `Transformer.encode`, faster on a CPU."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from transept.engines.native import operations
from transept.engines.native.prepared import PreparedLayer, prepare
from transept.engines.program import Product, encoder_layer
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
    prepared = prepare(model)
    ops = NativeEncoderOperations(layout, mask)
    x = model.source_embedding(source.ids) + model.source_positions(layout)
    stream = operations.enter(x, prepared.encoder_norms.first)
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
        qkv = self.layout.apart(layer.qkv(h))
        heads = qkv.view(*qkv.shape[:2], 3 * layer.n_heads, -1).transpose(1, 2)
        q, k, v = heads.chunk(3, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, scale=layer.scale)
        return Product(self.layout.together(out.transpose(1, 2).flatten(2)), layer.attention_out)

    def feed_forward(self, h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
        """Equation (2)."""
        return operations.feed_forward(h, layer)

    add_norm = staticmethod(operations.add_norm)
