"""The parts of a layer besides attention: feed-forward, residual and norm, embedding."""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from transept.shapes import Float, Int, Tensor

LAYER_NORM_EPSILON = 1e-5

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "swish": F.silu}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation (2)."""

    def __init__(self, d_model: int, d_ff: int, *, activation: str, dropout: float) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Each position by itself."""
        out: Tensor = self.w_2(self.dropout(self.activation(self.w_1(x))))
        return out


Sublayer = Callable[[Float[Tensor, "N D"]], Float[Tensor, "N D"]]


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))): the paper's residual connection, sections 3.1, 5.4."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=LAYER_NORM_EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "N D"], sublayer: Sublayer) -> Float[Tensor, "N D"]:
        """Put `sublayer` into the residual stream `x`."""
        out: Tensor = self.norm(x + self.dropout(sublayer(x)))
        return out


class PreNorm(PostNorm):
    """x + Dropout(Sublayer(LayerNorm(x))): the Annotated Transformer's, easier to train deep."""

    def forward(self, x: Float[Tensor, "N D"], sublayer: Sublayer) -> Float[Tensor, "N D"]:
        """Put `sublayer` into the residual stream `x`."""
        out: Tensor = x + self.dropout(sublayer(self.norm(x)))
        return out


RESIDUALS: dict[str, type[PostNorm]] = {"post": PostNorm, "pre": PreNorm}


class Embedding(nn.Module):
    """Token vectors, multiplied by √d_model (section 3.4); the pad token's is always zero."""

    def __init__(self, vocab_size: int, d_model: int, pad_id: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.scale = math.sqrt(d_model)
        self.pad_id = pad_id

    def forward(self, ids: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """Look the tokens up."""
        # The scale is per token, so that padding is zero even if its row were ever trained: the
        # decoder's start is a zero vector by construction, at no cost.
        scale = (ids != self.pad_id).to(self.weight.dtype) * self.scale
        return F.embedding(ids, self.weight) * scale[:, None]
