"""What the recurrent and the convolutional network of Table 2 share.

Both take the place of the Transformer in transept's `Update`, and are therefore subclasses of it:
`encode` and `decoder_states` read the same tokens, and the loss is computed with `projection`. They
use nothing of it but its name and `n_parameters`. One embedding matrix serves the
source, the target and the projection, as in section 3.4. The decoder starts with a zero vector.

Batches must have one sentence per row (`batch.layout = "by_length"`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transept.model.packing import Tokens
from transept.model.transformer import Transformer

PAD = 0


class Encoded(NamedTuple):
    """The encoder's output, as attention in the decoder reads it. The first axis is the batch."""

    keys: Tensor
    values: Tensor
    real: Tensor
    """False: padding."""


State = tuple[Tensor, ...]
"""What a decoder remembers of the tokens before. The first axis of each tensor is the batch."""


class EncoderDecoder(Transformer):
    """A network that translates. A subclass defines `read`, `write` and its layers.

    The layers of `encoder` and `decoder` have no matrices but those that are multiplied once per
    token: operations are counted by their size.
    """

    encoder: nn.Module
    decoder: nn.Module
    n_attentions: int
    """How often the decoder attends to the source per target token."""
    scale = 1.0
    """The initial standard deviation of embeddings."""

    def __init__(self, vocab_size: int, width: int, dropout: float) -> None:
        nn.Module.__init__(self)  # not the Transformer's, which would create its layers
        self.width = width
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=PAD)
        self.projection = nn.Linear(width, vocab_size, bias=False)
        self.projection.weight = self.embedding.weight
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        with torch.no_grad():
            self.embedding.weight[PAD] = 0

    def read(self, x: Tensor, real: Tensor) -> Encoded:
        """Encode embedded source tokens `B S D`."""
        raise NotImplementedError

    def write(self, y: Tensor, source: Encoded, state: State | None) -> tuple[Tensor, State]:
        """Decode embedded target tokens `B T D` that follow those in `state`."""
        raise NotImplementedError

    def encode(self, source: Tokens) -> Encoded:
        """Run the encoder."""
        real = source.layout.segments > 0
        return self.read(self._embedded(source), real)

    def decoder_states(self, target: Tokens, source: Encoded) -> Tensor:
        """The decoder's output before the projection, for each token of the flat axis."""
        states, _ = self.write(self._embedded(target.shifted_right(PAD)), source, None)
        return target.layout.to_flat(states)

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Logits of padded pairs: `logits[:, i]` predict `target_ids[:, i]`."""
        source, target = (Tokens.padded(ids, PAD) for ids in (source_ids, target_ids))
        states = self.decoder_states(target, self.encode(source))
        logits: Tensor = self.projection(states).view(*target_ids.shape, -1)
        return logits

    def embed(self, ids: Tensor) -> Tensor:
        """Embeddings multiplied by √d, as in section 3.4, and by `scale`."""
        x: Tensor = self.embedding(ids)
        return x * self.width**0.5 * self.scale

    def _embedded(self, tokens: Tokens) -> Tensor:
        rows = tokens.layout.to_rows(tokens.ids)
        return self.embed(rows.masked_fill(tokens.layout.segments == 0, PAD))

    def training_flops(self, sources: NDArray[np.int64], targets: NDArray[np.int64]) -> float:
        """FLOPs of one step by the lengths of its sentences; see `batches.training_flops`.

        6 per multiply-add of the forward pass, backward pass included. Padding is not counted.
        """
        per_target = _matrices(self.decoder) + self.projection.weight.numel()
        pairs = int((sources * targets).sum())
        forward = (
            int(sources.sum()) * _matrices(self.encoder)
            + int(targets.sum()) * per_target
            + pairs * 2 * self.width * self.n_attentions
        )
        return 6.0 * forward


def _matrices(module: nn.Module) -> int:
    """The elements of all matrices. A column is the scale of weight normalization."""
    sizes = (p.shape for p in module.parameters() if p.dim() == 2)
    return sum(rows * columns for rows, columns in sizes if columns > 1)


def attend(queries: Tensor, source: Encoded) -> Tensor:
    """Dot-product attention with one head (Luong et al., 2015): equation (1) without 1 / √d."""
    scores = queries @ source.keys.transpose(1, 2)
    hidden = ~source.real[:, None, :]
    # Not −∞: a row without any token would become NaN.
    scores = scores.float().masked_fill(hidden, torch.finfo(torch.float32).min)
    return scores.softmax(-1).to(source.values.dtype) @ source.values


@dataclass
class NetworkStep:
    """A network behind the search of `transept.decoding`: its `Step`."""

    model: EncoderDecoder
    source: Encoded
    state: State | None = None

    @classmethod
    def of(cls, model: EncoderDecoder, sources: Sequence[Sequence[int]]) -> "NetworkStep":
        """A step with one row per sentence."""
        device = model.projection.weight.device
        rows = [torch.tensor(ids, device=device) for ids in sources]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
        return cls(model, model.encode(Tokens.padded(padded, PAD)))

    def __call__(self, tokens: Tensor | None) -> Tensor:
        if tokens is None:
            tokens = self.source.real.new_full((len(self.source.real),), PAD, dtype=torch.long)
        embedded = self.model.embed(tokens[:, None])
        states, self.state = self.model.write(embedded, self.source, self.state)
        logits = self.model.projection(states[:, 0]).float()
        logits[:, PAD] = -torch.inf
        return logits.log_softmax(-1)

    def select(self, rows: Tensor) -> None:
        assert self.state is not None
        self.source = Encoded(*(part[rows] for part in self.source))
        self.state = tuple(part[rows] for part in self.state)
