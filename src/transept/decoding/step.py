"""What a search asks of a model, and what can stand in between.

A search holds rows: outputs that are not finished yet. The rows of one sentence stand together,
equally many for each sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from transept.shapes import Bool, Float, Int, Tensor


@runtime_checkable
class Step(Protocol):
    """A model that extends rows by one token at a time. It begins with one row a sentence."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Append a token to each row (None: nothing yet); log p of each token to come."""

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows, in this order; a row may be taken several times or not at all."""


@runtime_checkable
class Constraint(Protocol):
    """Which tokens may come next; row by row it follows what was appended."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Append a token to each row (None: nothing yet); True for each token that may come."""

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows, as the step does."""


@dataclass(slots=True)
class Constrained:
    """A step whose forbidden tokens have probability zero. What is left is not rescaled."""

    step: Step
    constraint: Constraint

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Log p where the constraint allows it, else −∞."""
        return self.step(tokens).masked_fill(~self.constraint(tokens), -torch.inf)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Pass it on to both."""
        self.step.select(rows)
        self.constraint.select(rows)


@dataclass(slots=True)
class Ensemble:
    """Several models as one: the mean of their probabilities."""

    steps: Sequence[Step]

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Log of the mean of p."""
        each = torch.stack([step(tokens) for step in self.steps])
        return each.logsumexp(dim=0) - torch.tensor(float(len(self.steps))).log().to(each)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Pass it on to all."""
        for step in self.steps:
            step.select(rows)


class ForcedPrefix:
    """A constraint: each output begins with given tokens."""

    def __init__(self, prefixes: Sequence[Sequence[int]], vocab_size: int) -> None:
        longest = max(map(len, prefixes), default=0)
        self._tokens = torch.full((len(prefixes), longest), -1)
        for row, prefix in enumerate(prefixes):
            self._tokens[row, : len(prefix)] = torch.tensor(prefix, dtype=torch.long)
        self._vocab_size = vocab_size
        self._at = 0

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Only the prefix's next token, as long as there is one; then any."""
        if tokens is not None:
            self._at += 1
        allowed = torch.ones(len(self._tokens), self._vocab_size, dtype=torch.bool)
        if self._at < self._tokens.shape[1]:
            wanted = self._tokens[:, self._at]
            forced = wanted >= 0
            allowed[forced] = False
            allowed[forced, wanted[forced]] = True
        return allowed

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows."""
        self._tokens = self._tokens[rows]
