"""Loss and perplexity on a development set."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from transept.training.update import Batch, Update


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
def validate(update: Update, batches: Iterable[tuple[Batch, int]]) -> Validation:
    """Run the network over (batch, target tokens) pairs, without dropout and without learning."""
    update.model.eval()
    sums, tokens = torch.zeros(2, dtype=torch.float64, device=update.runtime.device), 0
    with update.averaged():
        for batch, n_target_tokens in batches:
            with update.runtime.autocast():
                states = update.states(batch.source, batch.target)
                loss = update.loss(states, update.model.projection, batch.target.ids)
            sums += torch.stack(loss)
            tokens += n_target_tokens
    smoothed, nll = (sums / tokens).tolist()
    return Validation(smoothed, nll, tokens)
