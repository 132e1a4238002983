"""Outputs drawn at random, from the whole distribution or its likelier part."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from transept.config import Checks
from transept.decoding.greedy import one_by_one
from transept.decoding.hypothesis import Hypothesis, results
from transept.decoding.step import Step
from transept.runtime.seed import derive_seed
from transept.shapes import Float, Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingConfig:
    """How to draw.

    Example:
        >>> model, drawing = transept.load("runs/base"), SamplingConfig(top_k=10, seed=1)
        >>> again = [model.translate("It rains.", sampling=drawing).text for _ in range(2)]
        >>> again[0] == again[1]
        True
    """

    temperature: float = 1.0
    """Below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int | None = None
    """Draw only among so many of the likeliest tokens."""
    top_p: float | None = None
    """Draw among the likeliest tokens that together have at least this probability."""
    seed: int = 0
    """The same seed gives a sentence the same draws, whatever else is translated with it."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(self.temperature > 0, "temperature", "must be more than 0")
        top_k, top_p = self.top_k, self.top_p
        checks.that(top_k is None or top_k >= 1, "top_k", "must be at least 1, or left out")
        checks.that(top_p is None or 0 < top_p <= 1, "top_p", "must lie in (0, 1], or be left out")
        checks.done()


def seed_of_draw(seed: int, source: Sequence[int], number: int) -> int:
    """The seed of one draw of a sentence. It does not depend on what else is drawn with it."""
    return derive_seed(seed, number, *source)


def sample(
    step: Step,
    max_lengths: Sequence[int],
    seeds: Sequence[int],
    config: SamplingConfig,
    eos_id: int,
) -> list[Hypothesis]:
    """One output for each row. Scores are plain log-probabilities under the model.

    Args:
        step: The model.
        max_lengths: The longest output of each row, end symbol counted.
        seeds: A seed for each row, used instead of the config's: see `seed_of_draw`.
        config: From which part of the distribution to draw.
        eos_id: The end symbol.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(tokens: Tensor | None, sentence: list[int]) -> tuple[Tensor, Tensor]:
        log_p = step(tokens)
        p = likelier_part(log_p / config.temperature, config).cpu()
        # A generator for each row: the others in the batch do not change what it draws.
        drawn = [
            torch.multinomial(row, 1, generator=generators[number])
            for row, number in zip(p, sentence, strict=True)
        ]
        token = torch.cat(drawn).to(log_p.device)
        return log_p.gather(1, token[:, None]).squeeze(1), token

    states = one_by_one(step, choose, max_lengths, 0.0, eos_id)
    return [best for (best,) in results(states, len(max_lengths))]


def likelier_part(logits: Float[Tensor, "N V"], config: SamplingConfig) -> Float[Tensor, "N V"]:
    """Probabilities with all but the top-k and top-p tokens at zero."""
    p = logits.softmax(dim=1)
    ordered, tokens = p.sort(dim=1, descending=True, stable=True)
    if config.top_k is not None:
        ordered[:, config.top_k :] = 0.0
    if config.top_p is not None:
        before = ordered.cumsum(dim=1) - ordered
        ordered[before >= config.top_p] = 0.0
    kept = torch.zeros_like(p).scatter(1, tokens, ordered)
    return kept / kept.sum(dim=1, keepdim=True)
