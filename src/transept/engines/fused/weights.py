"""A model's weights in the type that the search computes in, and the operations of both stacks."""

import copy

import torch
from torch.nn import functional as F

from transept.engines.kernels import LONGEST
from transept.engines.kernels.dropout import Drop
from transept.engines.kernels.embedding import embed
from transept.engines.kernels.residual import add_norm
from transept.engines.program import Norm, Product, ResidualStream
from transept.model.layers import Embedding, FeedForward
from transept.model.positions import LearnedPositions, Positions
from transept.model.transformer import Transformer
from transept.shapes import Float, Int, Tensor


class DecodingWeights:
    """A copy of a model, for decoding."""

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.config, self.dtype = model.config, dtype
        self.model = copy.deepcopy(model).requires_grad_(False).eval().to(dtype)
        self.device = self.model.projection.weight.device
        self.source_positions = self._table(model.source_positions)
        self.target_positions = self._table(model.target_positions)
        self.no_drop = Drop(0.0, torch.zeros(2, dtype=torch.int32, device=self.device), 0)

    def _table(self, positions: Positions) -> Float[Tensor, "L D"]:
        """The encodings of all positions.

        They stay in single precision: only their sum with the embedding is rounded. The table has
        its full length from the start, since CUDA graphs remember its address. No sentence is
        longer than learned positions, but the rows of a finished one may read a row behind them.
        """
        n = LONGEST
        if isinstance(positions, LearnedPositions):
            n = min(n, len(positions.weight))
        positions.reach(n)
        table = positions.at(torch.arange(n, device=self.device)).detach().float()
        return F.pad(table, (0, 0, 0, LONGEST - n))

    def embed(
        self,
        embedding: Embedding,
        ids: Int[Tensor, " N"],
        positions: Int[Tensor, " N"],
        table: Float[Tensor, "L D"],
    ) -> Float[Tensor, "N D"]:
        """The vectors that enter a stack: scaled embedding plus positional encoding."""
        return embed(
            ids, embedding.weight, positions, table, embedding.scale,
            embedding.pad_id, self.no_drop, self.dtype,
        )  # fmt: skip

    def enter(self, x: Float[Tensor, "N D"], first: Norm | None) -> ResidualStream:
        """The stream in front of the first sub-layer."""
        if first is None:
            return ResidualStream(x, x)
        normed = F.layer_norm(x, first.shape, first.weight, first.bias, first.epsilon)
        return ResidualStream(x, normed)

    def add_norm(self, stream: ResidualStream, y: Product, norm: Norm) -> ResidualStream:
        """X + y and LayerNorm(x + y), in one kernel."""
        normed, saved = add_norm(
            stream.x, y.matrix(y.inner), norm.weight, norm.bias, norm.epsilon, self.no_drop
        )
        return norm.stream(saved.summed, normed)

    def feed_forward(self, network: FeedForward, h: Float[Tensor, "N D"]) -> Product:
        """Equation (2). The first matrix, its bias and a ReLU are one kernel."""
        if self.config.activation == "relu":
            inner = torch._addmm_activation(network.w_1.bias, h, network.w_1.weight.T)
        else:
            inner = network.activation(network.w_1(h))
        return Product(inner, network.w_2)
