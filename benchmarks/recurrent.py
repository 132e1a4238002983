"""The recurrent network of Table 2: LSTMs with attention, after GNMT (Wu et al., 2016).

As there: the first encoder layer reads in both directions, the other layers have residual
connections, and the attention of the first decoder layer is an input of all layers above it.

Simplified, which makes it faster or smaller:

- Scores of attention are dot products, not the output of a feed-forward network. The query is the
  output of the first decoder layer for the current token, not for the previous one. So the first
  layer does not read the attention's output, and cuDNN runs each layer over a whole sentence.
- 4 layers per side instead of 8, half of the width per direction in the first one, a width that
  gives as many parameters as the base Transformer, and one embedding matrix.
- No reinforcement learning, no coverage penalty, no quantization, and Adam from start to end.
"""

import torch
from encoder_decoder import Encoded, EncoderDecoder, State, attend
from torch import Tensor, nn


class Layer(nn.LSTM):
    """An LSTM that gets and returns its state with the batch first.

    It computes in `dtype` and not in that of autocast, which converts an LSTM to float16 even if
    the rest is in bfloat16: gradients would underflow. cuDNN multiplies float32 in TF32.
    """

    def __init__(self, inputs: int, width: int, dtype: torch.dtype) -> None:
        super().__init__(inputs, width, batch_first=True)
        self.dtype = dtype
        for bias in (self.bias_ih_l0, self.bias_hh_l0):
            nn.init.zeros_(bias)
        # The forget gate is open at first.
        nn.init.ones_(self.bias_ih_l0[width : 2 * width])

    def run(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The output for each position, and the state after the last one."""
        if state is None:
            state = (x.new_zeros(len(x), self.hidden_size, dtype=self.dtype),) * 2
        with torch.autocast(x.device.type, enabled=False):
            out, hidden, cell = torch.lstm(
                x.to(self.dtype),
                [part.unsqueeze(0).contiguous() for part in state],
                [weight.to(self.dtype) for weight in self._flat_weights],
                True, 1, 0.0, self.training, False, True,
            )  # fmt: skip
        return out.to(x.dtype), (hidden[0], cell[0])


class Recurrent(EncoderDecoder):
    """LSTM layers in encoder and decoder, with attention between them."""

    n_attentions = 1

    def __init__(
        self,
        vocab_size: int,
        width: int,
        *,
        n_layers: int,
        dropout: float,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(vocab_size, width, dropout)
        half = width // 2
        self.encoder = nn.ModuleList(
            [
                Layer(width, half, dtype),
                Layer(width, half, dtype),
                *(Layer(width, width, dtype) for _ in range(n_layers - 1)),
            ]
        )
        self.decoder = nn.ModuleList(
            [
                nn.Linear(width, width, bias=False),
                Layer(width, width, dtype),
                *(Layer(2 * width, width, dtype) for _ in range(n_layers - 1)),
            ]
        )
        nn.init.xavier_uniform_(self.decoder[0].weight)

    def read(self, x: Tensor, real: Tensor) -> Encoded:
        """The first layer in both directions, then the others."""
        rightwards, leftwards, *others = self.encoder
        x, order = self.dropout(x), _reversal(real)
        there, _ = rightwards.run(x)
        back, _ = leftwards.run(_reordered(x, order))
        x = torch.cat([there, _reordered(back, order)], dim=-1)
        for layer in others:
            out, _ = layer.run(self.dropout(x))
            x = x + out
        return Encoded(x, x, real)

    def write(self, y: Tensor, source: Encoded, state: State | None) -> tuple[Tensor, State]:
        """The first layer, attention with its output as query, then the other layers."""
        query, first, *others = self.decoder
        before = [state[i : i + 2] for i in range(0, len(state), 2)] if state else None
        y, after = first.run(self.dropout(y), before and before[0])
        context = self.dropout(attend(query(y), source).to(y.dtype))
        for number, layer in enumerate(others, 1):
            inputs = torch.cat([self.dropout(y), context], dim=-1)
            out, more = layer.run(inputs, before and before[number])
            y, after = y + out, after + more
        return self.dropout(y), after


def _reversal(real: Tensor) -> Tensor:
    """The position whose token moves to each position when sentences are reversed: `B S`.

    Padding stays at the end, so that the LSTM reads it after the sentence in both directions.
    """
    positions = torch.arange(real.shape[1], device=real.device).expand_as(real)
    return torch.where(real, real.sum(1, keepdim=True) - 1 - positions, positions)


def _reordered(x: Tensor, order: Tensor) -> Tensor:
    return x.gather(1, order[:, :, None].expand_as(x))
