"""One network or an ensemble: scores of given outputs, and attention."""

import math
from collections.abc import Iterator, Sequence

import torch

from transept.api.units import TooLongError
from transept.decoding.engine import TOKENS_AT_ONCE, Ids, batches_by_length
from transept.errors import ConfigError, Problem
from transept.model.attention import record_attention
from transept.model.packing import pad_rows
from transept.model.transformer import Transformer
from transept.shapes import Float, Int, Tensor
from transept.text.tokenizer import PAD_ID

LOGITS = 1 << 23
"""The most logits in memory at a time: all of a batch would be hundreds of megabytes."""


class Networks:
    """Networks that read and write the same ids. The mean of their probabilities counts."""

    def __init__(self, models: Sequence[Transformer]) -> None:
        self.models = tuple(model.eval() for model in models)
        self.device = self.models[0].projection.weight.device
        configs = [model.config for model in models]
        learned = (config.max_positions for config in configs if config.positions == "learned")
        self.max_positions = min(learned, default=None)
        """The longest that they can read or write at all, where positions are learned."""

    def __str__(self) -> str:
        counted = " + ".join(f"{model.n_parameters():,}" for model in self.models)
        return f"{counted} parameters on {self.device}"

    def within(self, length: int) -> int:
        """The length, or the longest that they can read or write, where that is less."""
        return length if self.max_positions is None else min(length, self.max_positions)

    def check_limit(self, max_source_length: int | None) -> None:
        """Refuse a limit that lets in what they cannot read at all."""
        asked, possible = max_source_length, self.max_positions
        if asked is not None and possible is not None and asked > possible:
            what = f"{asked} is more than the {possible} positions that the model has learned"
            raise ConfigError([Problem("max_source_length", what)])

    def check_positions(self, lengths: Sequence[int]) -> None:
        """Refuse a pair with a side, of this many tokens, that they cannot read or write at all."""
        possible = self.max_positions
        for number, length in enumerate(lengths, start=1):
            if possible is not None and length > possible:
                what = f"a side has {length:,} tokens, and the model knows {possible:,} positions"
                raise TooLongError(number, what, None, "leave the pair out")

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of pairs of similar length, as many as go through the network at once."""
        return batches_by_length(lengths, TOKENS_AT_ONCE[self.device.type])

    @torch.inference_mode()
    def token_log_probabilities(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> list[list[float]]:
        """Log p of each target token, given the source and the tokens before it."""
        source_ids, target_ids = self._padded(sources), self._padded(targets)
        each = torch.stack(
            [_token_log_probabilities(model, source_ids, target_ids) for model in self.models]
        )
        mean = each.logsumexp(dim=0) - math.log(len(self.models))
        return [row[: len(ids)] for row, ids in zip(mean.tolist(), targets, strict=True)]

    @torch.inference_mode()
    def source_attention(
        self, sources: Sequence[Ids], targets: Sequence[Ids]
    ) -> Float[Tensor, "B T S"]:
        """How much each decoder step looks at each source token.

        The mean over heads, over the upper third of the layers, and over the networks. The lower
        layers look elsewhere; which of the upper ones sees best differs from model to model.
        """
        source_ids, target_ids = self._padded(sources), self._padded(targets)
        each = []
        for model in self.models:
            layers = model.decoder.layers
            with record_attention(layers[-math.ceil(len(layers) / 3) :]) as weights:
                model.decoder_states(target_ids, model.encode(source_ids))
            of_layers = [w for name, w in weights.items() if name.endswith("source_attention")]
            each.append(torch.stack(of_layers).mean(dim=(0, 2)))
        return torch.stack(each).mean(dim=0).cpu()

    def _padded(self, rows: Sequence[Ids]) -> Int[Tensor, "B L"]:
        return pad_rows(rows, PAD_ID).to(self.device)


def _token_log_probabilities(
    model: Transformer, source_ids: Int[Tensor, "B S"], target_ids: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    states = model.decoder_states(target_ids, model.encode(source_ids))
    rows = max(1, LOGITS // model.config.vocab_size)
    parts = []
    for some, ids in zip(states.split(rows), target_ids.flatten().split(rows), strict=True):
        logits = model.project(some).float()
        logits[:, model.config.pad_id] = -torch.inf
        parts.append(logits.log_softmax(dim=1).gather(1, ids[:, None]))
    return torch.cat(parts).view(target_ids.shape)
