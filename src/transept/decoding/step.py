"""What a search asks of a model, what can stand in between, and what the search returns.

A search holds rows: outputs that are not finished yet. The rows of one sentence stand together,
equally many for each sentence.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from transept.shapes import Bool, Float, Int, Tensor


@runtime_checkable
class Step(Protocol):
    """A model that extends rows by one token at a time. It begins with one row a sentence."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Append a token to each row (None: nothing yet); return log p of every next token."""

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows, in this order; a row may be taken several times or not at all."""


@runtime_checkable
class RankingStep(Step, Protocol):
    """A step that finds the likeliest tokens faster than it can compute log p of all tokens."""

    def best(
        self, tokens: Int[Tensor, " N"] | None, k: int
    ) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
        """Append a token to each row; return log p and ids of the k likeliest next ones.

        They come best first. If the vocabulary has fewer than k tokens, all of them come.
        """


Rank = Callable[[Int[Tensor, " N"] | None, int], tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]]


def ranking(step: Step) -> Rank:
    """The step's `best`; where it has none, the k largest of all log p, which is the same."""
    if isinstance(step, RankingStep):
        return step.best

    def best(tokens: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
        log_p = step(tokens)
        top, token = log_p.topk(min(k, log_p.shape[1]), dim=1)
        return top, token

    return best


@runtime_checkable
class Constraint(Protocol):
    """Which tokens may come next in each row, after those that were appended to it."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Append a token to each row (None: nothing yet); return which tokens may come next."""

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows, as the step does."""


@dataclass(slots=True)
class Constrained:
    """A step whose forbidden tokens have probability zero. What is left is not rescaled."""

    step: Step
    constraint: Constraint

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Log p where the constraint allows it, else −∞."""
        log_p = self.step(tokens)
        return log_p.masked_fill(~self.constraint(tokens).to(log_p.device), -torch.inf)

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
        return each.logsumexp(dim=0) - math.log(len(self.steps))

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Pass it on to all."""
        for step in self.steps:
            step.select(rows)


class ForcedPrefix:
    """A constraint: each output begins with given tokens."""

    def __init__(
        self, prefixes: Sequence[Sequence[int]], vocab_size: int, device: str | torch.device = "cpu"
    ) -> None:
        longest = max(map(len, prefixes), default=0)
        filled = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
        self._tokens = torch.tensor(filled, dtype=torch.long, device=device)
        self._vocab_size = vocab_size
        self._at = 0

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Only the prefix's next token, as long as there is one; then any."""
        if tokens is not None:
            self._at += 1
        shape, device = (len(self._tokens), self._vocab_size), self._tokens.device
        allowed = torch.ones(shape, dtype=torch.bool, device=device)
        if self._at < self._tokens.shape[1]:
            wanted = self._tokens[:, self._at]
            forced = wanted >= 0
            allowed[forced] = False
            allowed[forced, wanted[forced]] = True
        return allowed

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Go on with these rows."""
        self._tokens = self._tokens[rows.to(self._tokens.device)]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output."""

    ids: tuple[int, ...]
    """Its tokens, without the end symbol."""
    log_probability: float
    """log P(Y|X), the end symbol included where there is one."""
    score: float
    """What it is ranked by: log P(Y|X) / lp(Y)."""
    finished: bool = True
    """Whether it ends in the end symbol, and not at the maximum length."""


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of an output while the search goes on."""

    ids: tuple[int, ...]
    """The best hypothesis now."""
    stable: int
    """So many of its first tokens will not change any more."""
    outputs: tuple[Hypothesis, ...] = ()
    """The result, best first, when the search is done."""


@runtime_checkable
class State(Protocol):
    """Where a search stands after a step, for each sentence that was not done before it."""

    sentence: list[int]
    """The numbers of those sentences."""
    done: list[bool]
    """Which of them are done now."""

    def result(self, row: int) -> list[Hypothesis]:
        """The outputs of one that is done, best first."""

    def partial(self, row: int) -> Partial:
        """What is known of one that may not be done."""


def results(states: Iterable[State], n_sentences: int) -> list[list[Hypothesis]]:
    """Run a search to its end; return the outputs of each sentence."""
    found: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    for state in states:
        for row, is_done in enumerate(state.done):
            if is_done:
                found[state.sentence[row]] = state.result(row)
    return found


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^α, where |Y| counts the end symbol."""
    return float(((5 + length) / 6) ** alpha)
