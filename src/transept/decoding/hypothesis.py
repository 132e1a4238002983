"""What a search returns, and what it knows on the way."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


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
