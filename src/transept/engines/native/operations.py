"""The operations that the encoder and the decoder of this engine share."""

import torch
from torch import nn

from transept.engines.native.prepared import PreparedLayer
from transept.engines.program import Norm, Product, ResidualStream
from transept.shapes import Float, Tensor


def enter(x: Float[Tensor, "N D"], first: nn.LayerNorm | None) -> ResidualStream:
    """The stream in front of the first sub-layer."""
    return ResidualStream(x, x if first is None else _layer_norm(x, first))


def feed_forward(h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
    """Equation (2)."""
    return Product(layer.activation(layer.inner(h)), layer.outer)


def add_norm(stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
    """The sum is part of the matrix product. `stream.x` is overwritten."""
    summed = y.matrix.onto(stream.x, y.inner)
    return norm.stream(summed, _layer_norm(summed, norm.module))


def _layer_norm(x: Float[Tensor, "N D"], norm: nn.LayerNorm) -> Float[Tensor, "N D"]:
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
