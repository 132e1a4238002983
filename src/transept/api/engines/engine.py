"""What an engine must do, and how it reports its progress."""

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from transept.api.config import Watch
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis

Ids = Sequence[int]
Done = Callable[[int], None]
"""Called again and again with the number of sentences that are done. It may raise an exception to
stop the search."""
ALL = 1 << 30
"""More sentences than ever wait: a feed that is asked for so many gives all."""


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
Found = list[tuple[int, list[Hypothesis]]]
"""Sentences that are done: the number of each, counted from 0 in the order in which the feed gave
them, and its outputs."""


class Engine(Protocol):
    """Searches for the outputs of sentences. It forms its own batches."""

    @property
    def name(self) -> str:
        """Its name, for the user."""

    @property
    def note(self) -> str:
        """What the user should know about its outputs or its speed; empty if nothing."""

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first.

        Args:
            inputs: The sentences.
            config: Beam size, length penalty, number of outputs.
            watch: Called with the number of sentences that are done.
        """

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while the search of others is running.

        It ends when all sentences are done and the feed gives no more.
        """


def search_in_turn(engine: Engine, feed: Feed, config: SearchConfig) -> Iterator[Found]:
    """The simple form of `search_feed`: batch after batch, each of all sentences that wait."""
    n_before = 0
    while inputs := feed(ALL):
        found = engine.search(inputs, config, lambda n_done: _poll(feed))
        yield [*enumerate(found, n_before)]
        n_before += len(inputs)


def _poll(feed: Feed) -> None:
    """Ask the feed for no sentence, so that it can raise an exception."""
    feed(0)


def nobody(n_done: int) -> None:
    """The `Done` of a caller who does not want to know."""


def out_of(n: int, watch: Watch | None) -> Done:
    """A `Done` that calls `watch` with the numbers of sentences done and of all, n."""
    return nobody if watch is None else lambda n_done: watch(n_done, n)


class DoneCounter:
    """Counts the sentences that several threads have done, and calls `watch` from one at a time."""

    def __init__(self, watch: Done) -> None:
        self._watch, self._lock, self._n_done = watch, Lock(), 0

    def add(self, n: int) -> None:
        """Count n more sentences as done."""
        with self._lock:
            self._n_done += n
            self._watch(self._n_done)
