"""The convolutional network of Table 2, after ConvS2S (Gehring et al., 2017).

As there: convolutions of width 3 with gated linear units and weight normalization, residual
connections scaled by √0.5, learned positions, and attention in each decoder layer to the sum of
the encoder's output and the embedding of its token.

Simplified:

- All layers have one width, which gives as many parameters as the base Transformer, with 8 layers
  per side instead of 15, whose last ones are wider. So nothing maps embeddings to other widths.
- Gradients of the encoder are not divided by the number of attentions: Adam rescales them. It
  replaces Nesterov's accelerated gradient.
- One embedding matrix serves the source, the target and the projection.
"""

import torch
from encoder_decoder import Encoded, EncoderDecoder, State, attend
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

K = 3
"""Width of a kernel."""
HALF = 0.5**0.5
"""Keeps the variance of a sum of two terms of equal variance."""


def linear(inputs: int, outputs: int, gain: float = 1.0) -> nn.Linear:
    """A weight-normalized matrix whose output has `gain` times the variance of its input."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=(gain / inputs) ** 0.5)
    nn.init.zeros_(layer.bias)
    return weight_norm(layer)


class Convolution(nn.Module):
    """A convolution and its gated linear unit, as one matrix product over windows of K tokens."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        # A gate that is half open passes on a quarter of the variance.
        self.weights = linear(K * width, 2 * width, gain=4.0 * (1.0 - dropout))

    def forward(self, x: Tensor) -> Tensor:
        """`B L+K-1 D` to `B L D`."""
        length = x.shape[1] - K + 1
        windows = torch.cat([x[:, i : i + length] for i in range(K)], dim=-1)
        return F.glu(self.weights(windows), dim=-1)


class DecoderLayer(nn.Module):
    """A convolution over earlier tokens, and attention to the source."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.convolution = Convolution(width, dropout)
        self.query = linear(width, width)
        self.output = linear(width, width)

    def forward(self, x: Tensor, embedded: Tensor, source: Encoded) -> Tensor:
        """`B T+K-1 D` to `B T D`, without the residual connection."""
        z = self.convolution(x)
        query = (self.query(z) + embedded) * HALF
        # The mean of n vectors has a variance of 1 / n, which depends on the sentence.
        spread = source.real.sum(1)[:, None, None].to(z.dtype).sqrt()
        context = self.output(attend(query, source) * spread)
        return (z + context) * HALF


class Convolutional(EncoderDecoder):
    """Gated convolutions in encoder and decoder, with attention in each decoder layer."""

    scale = 0.1  # so small that gates are half open at first, on which the initial weights rely

    def __init__(
        self, vocab_size: int, width: int, *, n_layers: int, dropout: float, max_positions: int
    ) -> None:
        super().__init__(vocab_size, width, dropout)
        self.n_attentions = n_layers
        self.positions = nn.ModuleList(nn.Embedding(max_positions, width) for _ in range(2))
        for positions in self.positions:
            nn.init.normal_(positions.weight, std=self.scale)
        self.encoder = nn.ModuleList(Convolution(width, dropout) for _ in range(n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(width, dropout) for _ in range(n_layers))

    def read(self, x: Tensor, real: Tensor) -> Encoded:
        """All layers. Padding is zero, like the positions beside a sentence."""
        embedded = x + self.positions[0](torch.arange(x.shape[1], device=x.device))
        x = self.dropout(embedded)
        for layer in self.encoder:
            inputs = self.dropout(x) * real[:, :, None]
            x = (layer(F.pad(inputs, (0, 0, K // 2, K // 2))) + x) * HALF
        return Encoded(x, (x + embedded) * HALF, real)

    def write(self, y: Tensor, source: Encoded, state: State | None) -> tuple[Tensor, State]:
        """All layers. The state is the position, and the last K − 1 inputs of each layer."""
        if state is None:
            start = torch.zeros(len(y), dtype=torch.long, device=y.device)
            state = (start, *[y.new_zeros(len(y), K - 1, self.width)] * len(self.decoder))
        start, *before = state
        positions = start[:, None] + torch.arange(y.shape[1], device=y.device)
        embedded = y + self.positions[1](positions)
        y, after = self.dropout(embedded), [start + y.shape[1]]
        for layer, earlier in zip(self.decoder, before, strict=True):
            inputs = torch.cat([earlier.to(y.dtype), self.dropout(y)], dim=1)
            after.append(inputs[:, 1 - K :])
            y = (layer(inputs, embedded, source) + y) * HALF
        return self.dropout(y), tuple(after)
