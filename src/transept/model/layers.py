"""Feed-forward network, residual connection with layer normalization, dropout, embedding."""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from transept.shapes import Float, Int, Tensor

LAYER_NORM_EPSILON = 1e-5

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu_, "swish": F.silu}
"""The ReLU works in place: its input is not needed again, and the operation is memory-bound."""


class Dropout(nn.Module):
    """Section 5.4: in training, zero each element with probability `p` and scale up the others."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """`Dropout(x)`."""
        if self.p == 0 or not self.training:
            return x
        return x * cpu_dropout_mask(x, self.p) if x.is_cpu else F.dropout(x, self.p)

    def add(self, x: Float[Tensor, "N D"], y: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """`x + Dropout(y)`."""
        if self.p > 0 and self.training and x.is_cpu:
            return torch.addcmul(x, y, cpu_dropout_mask(y, self.p))
        dropped: Tensor = self(y)
        return x + dropped

    def extra_repr(self) -> str:
        """Arguments that `repr` of the network shows."""
        return f"p={self.p}"


def cpu_dropout_mask(x: Float[Tensor, "N D"], p: float) -> Float[Tensor, "N D"]:
    """A mask of zeros and 1 / (1 − p), three times as fast as torch's dropout on a CPU.

    64 random bits serve four elements with 16 bits each. So p is rounded to a multiple of 1/65536.
    The scale is that of the rounded p, which keeps the mean exact.
    """
    random = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = random.view(torch.int16)[: x.numel()].view(x.shape)
    threshold = round(p * 2**16)
    mask = torch.ge(bits, threshold - 2**15, out=torch.empty_like(x))
    return mask.mul_(2**16 / (2**16 - threshold))


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation (2)."""

    def __init__(self, d_model: int, d_ff: int, *, activation: str, dropout: float) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "N D"]) -> Float[Tensor, "N D"]:
        """Apply the network to each position separately."""
        # addmm: on a CPU, nn.Linear with a bias takes a code path that is 10 % slower.
        inner = self.activation(torch.addmm(self.w_1.bias, x, self.w_1.weight.T))
        return torch.addmm(self.w_2.bias, self.dropout(inner), self.w_2.weight.T)


Sublayer = Callable[[Float[Tensor, "N D"]], Float[Tensor, "N D"]]


class Residual(nn.Module):
    """A residual connection with layer normalization; see `PostNorm` and `PreNorm`."""

    def __init__(self, d_model: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=LAYER_NORM_EPSILON)
        self.dropout = Dropout(dropout)


class PostNorm(Residual):
    """LayerNorm(x + Dropout(Sublayer(x))): the paper's residual connection, sections 3.1, 5.4."""

    def forward(self, x: Float[Tensor, "N D"], sublayer: Sublayer) -> Float[Tensor, "N D"]:
        """Apply `sublayer` to the residual stream `x`."""
        out: Tensor = self.norm(self.dropout.add(x, sublayer(x)))
        return out


class PreNorm(Residual):
    """x + Dropout(Sublayer(LayerNorm(x))), as in the Annotated Transformer.

    Deep networks are easier to train with it.
    """

    def forward(self, x: Float[Tensor, "N D"], sublayer: Sublayer) -> Float[Tensor, "N D"]:
        """Apply `sublayer` to the residual stream `x`."""
        return self.dropout.add(x, sublayer(self.norm(x)))


RESIDUALS: dict[str, type[Residual]] = {"post": PostNorm, "pre": PreNorm}


class Embedding(nn.Module):
    """The embedding matrix; vectors are multiplied by √d_model (section 3.4).

    The vector of the pad token is always zero.
    """

    def __init__(self, vocab_size: int, d_model: int, pad_id: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        self.scale = math.sqrt(d_model)
        self.pad_id = pad_id
        self.is_softmax_matrix = False
        """Whether the pre-softmax projection has the same matrix."""

    def forward(self, ids: Int[Tensor, " N"]) -> Float[Tensor, "N D"]:
        """The scaled vectors of the tokens."""
        # Padding has scale 0, so its vector is zero even if its row was trained. The decoder's
        # zero start vector relies on this.
        scale = (ids != self.pad_id).to(self.weight.dtype) * self.scale
        # The softmax gives every row a gradient. Adding those of the few tokens here to it is
        # faster on a CPU than making them a matrix of zeros first. torch.compile cannot do it.
        sparse = self.is_softmax_matrix and ids.is_cpu and not torch.compiler.is_compiling()
        return F.embedding(ids, self.weight, sparse=sparse) * scale[:, None]
