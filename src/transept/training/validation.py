"""Loss and perplexity on a development set."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from transept.training.batches import MicroBatch
from transept.training.update import Update


@dataclass(frozen=True, slots=True)
class Validation:
    """Means over the target tokens of a development set."""

    loss: float
    """With label smoothing, as in training."""
    nll: float
    """Without: −log p."""
    tokens: int

    @property
    def perplexity(self) -> float:
        """Exp of the mean −log p per token, never smoothed."""
        return math.exp(min(self.nll, 700.0))


@torch.no_grad()
def validate(update: Update, batches: Iterable[tuple[MicroBatch, int]]) -> Validation:
    """Run the network over (batch, target tokens) pairs, without dropout and without learning.

    Of several ranks each has some of the batches; all get the means over all of them.
    """
    update.model.eval()
    world = update.runtime.world
    sums = torch.zeros(3, dtype=torch.float64, device=update.runtime.device)
    with update.averaged():
        for batch, n_target_tokens in batches:
            world.pulse.at("validating")
            sums[:2] += torch.stack(update.objective(batch))
            sums[2] += n_target_tokens
    smoothed, nll, tokens = world.total(sums).tolist()
    return Validation(smoothed / tokens, nll / tokens, int(tokens))
