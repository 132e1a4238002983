"""A model's weights in the type that the search computes in, and what both stacks compute alike."""

import copy

import torch
from torch import nn

from transept.engines.kernels import LONGEST
from transept.engines.kernels.dropout import Drop
from transept.engines.kernels.embedding import embed
from transept.engines.kernels.residual import add_norm
from transept.model.layers import Embedding, FeedForward, PostNorm
from transept.model.positions import SinusoidalPositions
from transept.model.transformer import DecoderLayer, EncoderLayer, Transformer
from transept.shapes import Float, Int, Tensor


class Weights:
    """A copy of a model, for decoding."""

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.config, self.dtype = model.config, dtype
        self.model = copy.deepcopy(model).requires_grad_(False).eval().to(dtype)
        self.device = self.model.projection.weight.device
        # The position table stays in single precision: only the sum with the embedding is rounded.
        # It has its full length from the start, since CUDA graphs remember its address.
        self.positions = SinusoidalPositions(model.config.d_model, LONGEST).to(self.device)
        self.no_drop = Drop(0.0, torch.zeros(2, dtype=torch.int32, device=self.device), 0)

    def embed(
        self, embedding: Embedding, ids: Int[Tensor, " N"], positions: Int[Tensor, " N"]
    ) -> Float[Tensor, "N D"]:
        """The vectors that enter a stack: scaled embedding plus position."""
        return embed(
            ids, embedding.weight, positions, self.positions.table, embedding.scale,
            embedding.pad_id, self.no_drop, self.dtype,
        )  # fmt: skip

    def add_norm(
        self, x: Float[Tensor, "N D"], y: Float[Tensor, "N D"],
        layer: EncoderLayer | DecoderLayer, number: int,
    ) -> Float[Tensor, "N D"]:  # fmt: skip
        """LayerNorm(x + y), where y is the output of the layer's sub-layer with this number."""
        residual = layer.residuals[number]
        assert isinstance(residual, PostNorm)
        norm: nn.LayerNorm = residual.norm
        return add_norm(x, y, norm.weight, norm.bias, norm.eps, self.no_drop)[0]

    def feed_forward(self, network: FeedForward, x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Equation (2). The first matrix, its bias and the ReLU are one kernel."""
        inner = torch._addmm_activation(network.w_1.bias, x, network.w_1.weight.T)
        return torch.addmm(network.w_2.bias, inner, network.w_2.weight.T)
