"""The interface between search and model, wrappers around a model, and the results of a search.

A search keeps rows: outputs that are not finished yet. The rows of one sentence are adjacent, and
every sentence has the same number of rows.
"""

import math
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from transept.shapes import Bool, Float, Int, Tensor


@runtime_checkable
class Step(Protocol):
    """An autoregressive model that extends rows token by token, starting with one per sentence."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Append a token to each row (None: at the start); return log p of every next token."""

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Continue with these rows, in this order. A row may be repeated or omitted."""


@runtime_checkable
class RankingStep(Step, Protocol):
    """A step that finds the likeliest tokens faster than it can compute log p of all tokens."""

    def best(
        self, tokens: Int[Tensor, " N"] | None, k: int
    ) -> tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]:
        """Append a token to each row; return log p and ids of the k likeliest next tokens.

        Best first. If the vocabulary has fewer than k tokens, returns all of them.
        """


def not_done(done: Sequence[bool]) -> list[int]:
    """The indices of the sentences that are not done, in the order for `Step.select`.

    The last ones take the places of those that are done, so that a cache moves only these.
    """
    n_left = len(done) - sum(done)
    last = (index for index in range(n_left, len(done)) if not done[index])
    return [next(last) if done[index] else index for index in range(n_left)]


Rank = Callable[[Int[Tensor, " N"] | None, int], tuple[Float[Tensor, "N K"], Int[Tensor, "N K"]]]


def ranking(step: Step) -> Rank:
    """The step's `best` method, or an equivalent that selects the k largest of all log p."""
    if isinstance(step, RankingStep):
        return step.best

    def best(tokens: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
        log_p = step(tokens)
        top, token = log_p.topk(min(k, log_p.shape[1]), dim=1)
        return top, token

    return best


@runtime_checkable
class Constraint(Protocol):
    """Decides which tokens may come next in each row, given the tokens appended so far."""

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Append a token to each row (None: at the start); return which tokens may come next."""

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Continue with these rows; see `Step.select`."""


@dataclass(slots=True)
class Constrained:
    """A step whose forbidden tokens have probability zero. The others are not rescaled."""

    step: Step
    constraint: Constraint

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Log p of allowed tokens, −∞ for the others."""
        log_p = self.step(tokens)
        return log_p.masked_fill(~self.constraint(tokens).to(log_p.device), -torch.inf)

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Select rows of the step and of the constraint."""
        self.step.select(rows)
        self.constraint.select(rows)


@dataclass(slots=True)
class Ensemble:
    """An ensemble of models: the mean of their probabilities."""

    steps: Sequence[Step]

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Float[Tensor, "N V"]:
        """Log of the mean probability."""
        each = torch.stack([step(tokens) for step in self.steps])
        return each.logsumexp(dim=0) - math.log(len(self.steps))

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Select rows of every model."""
        for step in self.steps:
            step.select(rows)


class ForcedPrefix:
    """A constraint: each output starts with given tokens."""

    def __init__(
        self,
        prefixes: Sequence[Sequence[int]],
        vocab_size: int,
        device: str | torch.device = "cpu",
        after: Sequence[Set[int] | None] = (),
    ) -> None:
        """Create a constraint.

        Args:
            prefixes: The first tokens of each output.
            vocab_size: The number of tokens.
            device: The device of the constraint.
            after: The tokens that may follow each prefix. None: any token. Default: any.
        """
        longest = max(map(len, prefixes), default=0)
        filled = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
        self._tokens = torch.tensor(filled, dtype=torch.long, device=device)
        self._vocab_size = vocab_size
        self._at = 0
        self._after = [
            *zip(map(len, prefixes), after or [None] * len(prefixes), strict=True),
        ]

    def __call__(self, tokens: Int[Tensor, " N"] | None) -> Bool[Tensor, "N V"]:
        """Allow only the next token of the prefix, and any token after the prefix."""
        if tokens is not None:
            self._at += 1
        shape, device = (len(self._tokens), self._vocab_size), self._tokens.device
        allowed = torch.ones(shape, dtype=torch.bool, device=device)
        if self._at < self._tokens.shape[1]:
            wanted = self._tokens[:, self._at]
            forced = wanted >= 0
            allowed[forced] = False
            allowed[forced, wanted[forced]] = True
        for row, (length, after) in enumerate(self._after):
            if after is not None and length == self._at and length:
                allowed[row] = False
                allowed[row, [*after]] = True
        return allowed

    def select(self, rows: Int[Tensor, " M"]) -> None:
        """Continue with these rows."""
        self._tokens = self._tokens[rows.to(self._tokens.device)]
        self._after = [self._after[row] for row in rows.tolist()]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output."""

    ids: tuple[int, ...]
    """Its tokens, without the end symbol."""
    log_probability: float
    """log P(Y|X), including the end symbol if there is one."""
    score: float
    """log P(Y|X) / lp(Y), by which hypotheses are ranked."""
    finished: bool = True
    """Whether it ends with the end symbol and was not cut at the maximum length."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial output of a running search."""

    ids: tuple[int, ...]
    """The best hypothesis so far."""
    stable: int
    """The number of leading tokens that can no longer change."""
    outputs: tuple[Hypothesis, ...] = ()
    """The outputs, best first, when the search is done."""


@runtime_checkable
class State(Protocol):
    """The state of a search after a step, for each sentence that was not done before it."""

    sentence: list[int]
    """The indices of these sentences."""
    done: list[bool]
    """Whether each of them is done."""

    def result(self, row: int) -> list[Hypothesis]:
        """The outputs of a sentence that is done, best first."""

    def partial(self, row: int) -> Partial:
        """The partial output of a sentence that may not be done."""


def results(states: Iterable[State], n_sentences: int) -> list[list[Hypothesis]]:
    """Run a search to its end and return the outputs of each sentence."""
    found: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]
    for state in states:
        for row, is_done in enumerate(state.done):
            if is_done:
                found[state.sentence[row]] = state.result(row)
    return found


def length_penalty(length: int, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^α, where |Y| includes the end symbol."""
    return float(((5 + length) / 6) ** alpha)
