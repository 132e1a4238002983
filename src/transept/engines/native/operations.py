"""The operations that the encoder and the decoder of this engine share."""

import torch

from transept.engines.native.prepared import PreparedLayer
from transept.engines.program import Norm, Product, ResidualStream
from transept.shapes import Float, Tensor


def enter(x: Float[Tensor, "N D"], first: Norm | None) -> ResidualStream:
    """The stream in front of the first sub-layer."""
    if first is None:
        return ResidualStream(x, x)
    normed = torch.layer_norm(x, first.shape, first.weight, first.bias, first.epsilon)
    return ResidualStream(x, normed)


def feed_forward(h: Float[Tensor, "N D"], layer: PreparedLayer) -> Product:
    """Equation (2)."""
    return Product(layer.activation(layer.inner(h)), layer.outer)


def add_norm(stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
    """The sum is part of the matrix product. `stream.x` is overwritten."""
    summed = y.matrix.onto(stream.x, y.inner)
    normed = torch.layer_norm(summed, norm.shape, norm.weight, norm.bias, norm.epsilon)
    return norm.stream(summed, normed)
