"""The interface of engines, which search for the outputs of sentences in batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from transept.decoding.beam import SearchObserver
from transept.decoding.config import SamplingConfig, SearchConfig
from transept.decoding.step import Constraint, Hypothesis, Partial
from transept.progress import Watch

Ids = Sequence[int]
ALL = 1 << 30
"""Larger than any queue: requests all waiting sentences from a feed."""
TOKENS_AT_ONCE = {"cpu": 4096, "cuda": 65_536}
"""Maximum number of tokens, padding included, per batch."""


Forms = Mapping[tuple[int, ...], Sequence[tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How required sequences may occur in an output."""

    after: Set[int] | None = None
    """Tokens that may follow a required sequence or a prefix, so that it does not become part of
    another word. The end symbol always may follow a required sequence. None: any token."""
    opening: Set[int] = frozenset()
    """Opening brackets and quotation marks. After one, only the other forms of a sequence start,
    if it has any."""
    forms: Forms = field(default_factory=dict)
    """Other sequences that count as a required one, such as that after an opening bracket."""
    first: Forms = field(default_factory=dict)
    """Sequences that count as a required one at the start of an output, such as that with an
    upper-case letter."""


ANY_SPELLING = Spelling()


class Input(NamedTuple):
    """A sentence, and limits on its outputs."""

    source: Ids
    """Its tokens, end symbol included."""
    max_length: int
    """Maximum output length in tokens, end symbol included."""
    prefix: Ids = ()
    """Tokens with which each output must start."""
    required: Sequence[Ids] = ()
    """Token sequences that each output must contain, without overlaps. An output that does not is
    not finished. Sampling ignores them."""
    spelling: Spelling = ANY_SPELLING
    """How they may occur."""

    @property
    def n_positions(self) -> int:
        """The number of positions needed by the source and the longest output."""
        return max(len(self.source), self.max_length)


Feed = Callable[[int], Sequence[Input]]
"""Returns at most n waiting sentences to a running search, possibly none.

The search calls the feed repeatedly. It also calls it, with 0, when it has no free slot, because
the feed may raise an exception to stop the search.
"""
Drafts = Callable[[int, Callable[[], Partial]], None]
"""Called after each step of a search with the index of a sentence that is not done, and a function
that returns its partial output. Several threads may call it."""
Constrain = Callable[[Sequence[int]], Constraint]
"""Creates the constraint of a batch from the indices of its sentences."""
Found = list[tuple[int, list[Hypothesis]]]
"""Finished sentences: the index of each, counted from 0 in the order of the feed, and its
outputs."""


@runtime_checkable
class Engine(Protocol):
    """Searches for the outputs of sentences and forms its own batches."""

    @property
    def name(self) -> str:
        """The name shown to the user."""

    @property
    def note(self) -> str:
        """A warning for the user about this choice of engine; usually empty."""

    @property
    def faster(self) -> str | None:
        """The name of an installed engine that is faster for this model but less exact, if any."""

    @property
    def native(self) -> "StepEngine":
        """The engine for operations that this one does not support; may be the engine itself."""

    def search(
        self, inputs: Sequence[Input], config: SearchConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence, best first.

        Args:
            inputs: The sentences.
            config: Beam size, length penalty, number of outputs.
            watch: Called with the number of finished sentences and the total.
        """

    def search_feed(self, feed: Feed, config: SearchConfig) -> Iterator[Found]:
        """`search` for sentences that arrive while the search is running.

        Ends when all sentences are done and the feed returns no more.
        """


@runtime_checkable
class StepEngine(Engine, Protocol):
    """An engine that searches with a `Step`. Supports streaming, sampling and constraints."""

    def search(
        self,
        inputs: Sequence[Input],
        config: SearchConfig,
        watch: Watch,
        constrain: Constrain | None = None,
        drafts: Drafts | None = None,
    ) -> list[list[Hypothesis]]:
        """The best outputs for each sentence that its constraint allows, best first."""

    def search_feed(
        self, feed: Feed, config: SearchConfig, drafts: Drafts | None = None
    ) -> Iterator[Found]:
        """`Engine.search_feed`, which also reports partial outputs."""

    def stream(
        self, one: Input, config: SearchConfig, observer: SearchObserver | None = None
    ) -> Iterator[Partial]:
        """`search` for one sentence; yield the partial output after each token.

        An observer watches a beam search without required sequences.
        """

    def sample(
        self, inputs: Sequence[Input], sampling: SamplingConfig, n: int, watch: Watch
    ) -> list[list[Hypothesis]]:
        """Sample n outputs per sentence."""


def batches_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Indices of items in batches of similar length, longest first.

    Args:
        lengths: The length of each item, in tokens.
        max_tokens: Maximum number of tokens per batch, padding included. A batch has at least one
            item.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        # The first item of a batch is the longest and sets its width.
        if batch and (len(batch) + 1) * lengths[batch[0]] > max_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def dealt(batches: Iterable[list[int]], n_threads: int) -> Iterator[list[int]]:
    """Each batch in a part for each thread. The parts take about the same time.

    Items are dealt like cards, because a part of long items would take longer than one of short
    ones with the same number of tokens.
    """
    for batch in batches:
        yield from (batch[first::n_threads] for first in range(min(n_threads, len(batch))))


Search = Callable[[Sequence[Input], SearchConfig, Watch], list[list[Hypothesis]]]


def search_with_fallback(
    search: Search,
    fallback: Search,
    is_supported: Callable[[Input], bool],
    inputs: Sequence[Input],
    config: SearchConfig,
    watch: Watch,
) -> list[list[Hypothesis]]:
    """`search` for the sentences that it supports, then `fallback` for the others.

    Args:
        search: A search that does not support every sentence.
        fallback: A search that does.
        is_supported: Whether `search` supports a sentence.
        inputs: The sentences.
        config: Beam size, length penalty, number of outputs.
        watch: Called with the number of finished sentences and the total.
    """
    mine = [index for index, one in enumerate(inputs) if is_supported(one)]
    left = sorted({*range(len(inputs))}.difference(mine))
    found: dict[int, list[Hypothesis]] = {}
    for indices, run in ((mine, search), (left, fallback)):
        if indices:
            some = [inputs[index] for index in indices]
            outputs = run(some, config, _continued(watch, len(found), len(inputs)))
            found |= zip(indices, outputs, strict=True)
    return [found[index] for index in range(len(inputs))]


def _continued(watch: Watch, n_before: int, total: int) -> Watch:
    """A watch for some of the sentences."""
    return lambda done, _: watch(n_before + done, total)


SearchFrom = Callable[[int, Sequence[Input], SearchConfig, Watch], list[list[Hypothesis]]]
"""A search that also gets the index of its first sentence."""


def search_sequentially(search: SearchFrom, feed: Feed, config: SearchConfig) -> Iterator[Found]:
    """A simple `search_feed`: one search after another, each with all waiting sentences."""
    n_before = 0
    while inputs := feed(ALL):
        found = search(n_before, inputs, config, lambda done, total: _poll(feed))
        yield [*enumerate(found, n_before)]
        n_before += len(inputs)


def _poll(feed: Feed) -> None:
    """Request no sentence, so that the feed can raise an exception."""
    feed(0)
