"""What an engine is, and how whoever watches one is told."""

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from transept.api.config import Watch
from transept.decoding.config import SearchConfig
from transept.decoding.hypothesis import Hypothesis

Ids = Sequence[int]
Done = Callable[[int], None]
"""Told, again and again, how many sentences are done; may raise to stop the work."""
ALL = 1 << 30
"""More than ever wait."""


class Input(NamedTuple):
    """A sentence, and what its outputs may be."""

    source: Ids
    """End symbol included."""
    max_length: int
    """Of an output, end symbol counted."""
    prefix: Ids = ()
    """What each output begins with."""

    @property
    def n_positions(self) -> int:
        """How many it may take: those of its source, or of an output where that may be longer."""
        return max(len(self.source), self.max_length)


Feed = Callable[[int], Sequence[Input]]
"""Gives at most so many sentences that wait; none where none does now. It is asked again and again,
if only for 0, and may raise to stop the work."""
Found = list[tuple[int, list[Hypothesis]]]
"""Sentences that are done: their numbers, in the order in which they came, and their outputs."""


class Engine(Protocol):
    """Searches for outputs. It forms its own batches."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def note(self) -> str:
        """What a user should know of its outputs; nothing where they are the paper's."""

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Done
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first.

        Args:
            inputs: The sentences.
            config: Beam size, length penalty, number of outputs.
            watch: Told how many sentences are done.
        """

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that come while others are under way.

        It ends when all are done and nobody waits.
        """


def search_in_turn(engine: Engine, feed: Feed, config: SearchConfig) -> Iterator[Found]:
    """`search_feed`, slow and obvious: all that wait together, then all that came meanwhile."""
    n_before = 0
    while inputs := feed(ALL):
        found = engine.search(inputs, config, lambda n_done: _asked(feed))
        yield [*enumerate(found, n_before)]
        n_before += len(inputs)


def _asked(feed: Feed) -> None:
    """Let it raise."""
    feed(0)


def nobody(n_done: int) -> None:
    """Watches nothing."""


def out_of(n: int, watch: Watch | None) -> Done:
    """Tell whoever watches how many of n are done; where there is none, nobody."""
    return nobody if watch is None else lambda n_done: watch(n_done, n)


class Told:
    """Counts for whoever watches, who is told by one thread at a time."""

    def __init__(self, watch: Done) -> None:
        self._watch, self._lock, self._n_done = watch, Lock(), 0

    def done(self, n: int) -> None:
        """So many more sentences are done."""
        with self._lock:
            self._n_done += n
            self._watch(self._n_done)
