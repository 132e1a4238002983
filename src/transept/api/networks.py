"""One network, or several as one: ids in, numbers out."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import torch

from transept.api.units import TooLongError
from transept.decoding.shortlist import Shortlist
from transept.decoding.step import Constrained, Ensemble, ForcedPrefix, Step
from transept.errors import ConfigError, Problem
from transept.model.attention import record_attention
from transept.model.encoding import encode
from transept.model.incremental import IncrementalDecoder
from transept.model.transformer import Transformer
from transept.shapes import Float, Int, Tensor
from transept.text.tokenizer import PAD_ID

Ids = Sequence[int]
PLACES = {"cpu": 4096, "cuda": 65_536}
"""Tokens, padding too, that go through a network together."""
LOGITS = 1 << 23
"""So many are held at a time: all of a batch would be hundreds of megabytes."""
SHARED = 1 << 19
"""A product of a few rows by a matrix of fewer numbers is not worth sharing among cores: it saves a
tenth of the time on a quiet machine, and takes three times as long and more on a busy one, where
one thread waits for the other to be let in."""


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

    @property
    def threads(self) -> int:
        """How many threads share the products of a sentence by itself, on a CPU."""
        widest = max(model.config.d_model * model.config.d_ff for model in self.models)
        return 1 if widest < SHARED else torch.get_num_threads()

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

    def batches(
        self, lengths: Sequence[int], rows: int = 1, at_least: int = 1
    ) -> Iterator[list[int]]:
        """Indices of similar lengths together, as many as go through at once, longest first.

        Args:
            lengths: Of each item, in tokens.
            rows: How many rows of the network each item takes.
            at_least: Make so many batches or more, where there are as many items.
        """
        places = PLACES[self.device.type] // rows
        most = max(1, math.ceil(len(lengths) / at_least))
        batch: list[int] = []
        for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
            # The first of a batch, its longest, sets the width of all its rows.
            too_wide = batch and (len(batch) + 1) * lengths[batch[0]] > places
            if too_wide or len(batch) == most:
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch

    def step(
        self, sources: Sequence[Ids], prefixes: Sequence[Ids], shortlist: Shortlist | None = None
    ) -> Step:
        """What a search asks; a row for each source, whose output begins with the prefix.

        With a shortlist, only what the sources may lead to, and what is in the prefixes, can come.
        """
        source_ids = self._padded(sources)
        tokens = None
        if shortlist is not None:
            given = torch.tensor([*chain.from_iterable(prefixes)], dtype=torch.long)
            tokens = shortlist.tokens(source_ids.cpu(), given).to(self.device)
        steps = [
            IncrementalDecoder(model, encode(model, source_ids), tokens) for model in self.models
        ]
        step: Step = Ensemble(steps) if len(steps) > 1 else steps[0]
        if any(prefixes):
            step = Constrained(step, ForcedPrefix(prefixes, self.models[0].config.vocab_size))
        return step

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
        width = max(map(len, rows))
        filled = [[*ids, *[PAD_ID] * (width - len(ids))] for ids in rows]
        return torch.tensor(filled, device=self.device)


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
