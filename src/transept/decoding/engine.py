"""What an engine must do: search for the outputs of sentences, in batches that it forms."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from transept.decoding.config import SamplingConfig, SearchConfig
from transept.decoding.step import Constraint, Hypothesis, Partial
from transept.progress import Watch

Ids = Sequence[int]
ALL = 1 << 30
"""More sentences than ever wait: a feed that is asked for this many returns all."""
TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
"""The most tokens, padding included, that go through a network together."""


class Input(NamedTuple):
    """A sentence to search outputs for, and what these may be."""

    source: Ids
    """Its tokens, the end symbol included."""
    max_length: int
    """The most tokens that an output may have, the end symbol included."""
    prefix: Ids = ()
    """The tokens that each output must begin with."""

    @property
    def n_positions(self) -> int:
        """The positions that it needs: for its source or its longest output, whichever is more."""
        return max(len(self.source), self.max_length)


Feed = Callable[[int], Sequence[Input]]
"""Gives sentences to a search that is running: at most so many, and none if none waits now.

The search calls it again and again. It calls it even when it has no room, with 0, because the feed
may raise an exception to stop the search.
"""
Constrain = Callable[[Sequence[int]], Constraint]
"""Makes the constraint of a batch from the numbers of its sentences."""
Found = list[tuple[int, list[Hypothesis]]]
"""Sentences that are done: the number of each, counted from 0 in the order in which the feed gave
them, and its outputs."""


@runtime_checkable
class Engine(Protocol):
    """Searches for the outputs of sentences. It forms its own batches."""

    @property
    def name(self) -> str:
        """Its name, for the user."""

    @property
    def note(self) -> str:
        """A warning for the user about this choice of engine; usually empty."""

    @property
    def faster(self) -> str | None:
        """The name of an installed engine that is faster for this model but less exact, if any."""

    @property
    def native(self) -> "StepEngine":
        """The engine for what this one cannot do; it may be the same one."""

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first.

        Args:
            inputs: The sentences.
            config: Beam size, length penalty, number of outputs.
            watch: Called with the number of sentences that are done and that of all.
        """

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while the search of others is running.

        It ends when all sentences are done and the feed gives no more.
        """


@runtime_checkable
class StepEngine(Engine, Protocol):
    """An engine that searches over a `Step`, and so can also stream, sample and be constrained."""

    def search(
        self,
        inputs: Sequence[Input],
        config: SearchConfig,
        watch: Watch,
        constrain: Constrain | None = None,
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first, as the constraint of each allows."""

    def stream(self, one: Input, config: SearchConfig) -> Iterator[Partial]:
        """`search` for one sentence; yield the partial output after each token."""

    def draw(
        self, inputs: Sequence[Input], sampling: SamplingConfig, n: int, watch: Watch
    ) -> list[list[Hypothesis]]:
        """Draw n outputs of each sentence at random."""


def batches_by_length(
    lengths: Sequence[int], most_tokens: int, at_least: int = 1
) -> Iterator[list[int]]:
    """Indices of items of similar length, in batches, longest first.

    Args:
        lengths: The length of each item, in tokens.
        most_tokens: The most tokens of a batch, padding included; one item is always a batch.
        at_least: Make this many batches or more, if there are as many items.
    """
    most = max(1, math.ceil(len(lengths) / at_least))
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        # The first of a batch, its longest, sets the width of all its rows.
        too_wide = batch and (len(batch) + 1) * lengths[batch[0]] > most_tokens
        if too_wide or len(batch) == most:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def search_in_turn(engine: Engine, feed: Feed, config: SearchConfig) -> Iterator[Found]:
    """The simple form of `search_feed`: batch after batch, each of all sentences that wait."""
    n_before = 0
    while inputs := feed(ALL):
        found = engine.search(inputs, config, lambda done, total: _poll(feed))
        yield [*enumerate(found, n_before)]
        n_before += len(inputs)


def _poll(feed: Feed) -> None:
    """Ask the feed for no sentence, so that it can raise an exception."""
    feed(0)
