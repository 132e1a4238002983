"""Outputs drawn at random, from the whole distribution or its likelier part."""

from collections.abc import Sequence

import torch

from transept.decoding.config import SamplingConfig
from transept.decoding.greedy import one_by_one
from transept.decoding.hypothesis import Hypothesis, results
from transept.decoding.step import Step
from transept.runtime.seed import derive_seed
from transept.shapes import Float, Tensor


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
