"""Operations on a model, and the jobs that collect their results.

An operation is a kind of work: translate, score, return attention, parse. A job is the items of a
request with their results. `batching` runs them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from transept.api.attention import AttentionMap
from transept.api.config import Options
from transept.api.parser import Parser
from transept.api.parses import Parse, ParseConfig
from transept.api.scoring import PairScore
from transept.api.segmentation import SEARCH
from transept.api.texts import Draft, Outputs, Translation, Unit
from transept.api.transducer import Transducer
from transept.apps.serve.messages import AttentionAnswer, AttentionRequest, AttentionWeights
from transept.decoding.config import BeamConfig
from transept.errors import DataError, TooLongError
from transept.text.glossary import Glossary
from transept.text.tokenizer import Tokenizer

ALL = 1 << 30
"""Larger than any queue, so that a feed returns all items."""

MOST_ROWS = 8
"""The maximum cost of a sentence with terms, as a multiple of its cost without them."""
FIRST_ITEMS = 1
"""The number of items of a streamed job in its first batch."""
GROWTH = 4
"""The number of items grows by this factor with each batch, so that the first results arrive early
and later batches are efficient."""
Item = TypeVar("Item")
Result = TypeVar("Result")
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Found = Iterator[Sequence[tuple[int, Result]]]


def _ignore_draft(number: int, draft: Callable[[], Draft]) -> None: ...


@dataclass(frozen=True)
class ItemFeed(Generic[Out]):
    """Gives an operation its items."""

    take: Callable[[int], Sequence[Out]]
    draft: Callable[[int, Callable[[], Draft]], None] = _ignore_draft
    """Called with the number of an item and a function that returns a draft of its result."""

    def __call__(self, n: int) -> Sequence[Out]:
        """At most n items, or none if none is queued."""
        return self.take(n)


@runtime_checkable
class Operation(Protocol[In, Out]):
    """The work on the items of a request: a model and its options.

    Items of equal operations may be decoded in one batch.
    """

    def __hash__(self) -> int: ...

    @property
    def beam_size(self) -> int:
        """The number of hypotheses per item, used to estimate the decoding time."""

    def size(self, item: In) -> int:
        """The approximate number of tokens of an item, used to estimate the decoding time."""

    def run(self, feed: ItemFeed[In]) -> Found[Out]:
        """Yield results as soon as they are available, each with the number of its item.

        Items are numbered from 0 in the order in which the feed returned them.

        Args:
            feed: Returns at most n items. It must be called regularly, even with 0, because it
                raises an exception to stop the work.
        """


class Job(Generic[Item, Result]):
    """The items of one request and their results."""

    def __init__(
        self,
        operation: Operation[Item, Result],
        items: Sequence[Item],
        remove: "Callable[[Job[Any, Any]], None]",
        streamed: bool = False,
    ) -> None:
        self.operation, self.items, self._remove = operation, items, remove
        self.share = FIRST_ITEMS if streamed else None
        """The maximum number of items in the next batch. None: no limit, and no drafts."""
        self.sizes = [*map(operation.size, items)]
        self.queued = deque(range(len(items)))
        """The indices of the items that are still queued."""
        self.cancelled = False
        self.results: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
        """Set when the results of all items are available."""
        self.found: dict[int, Result] = {}
        self.n_ready = 0
        """The number of leading items whose results are available."""
        self.draft: tuple[int, Draft] | None = None
        """The index of an item and the newest draft of its result."""
        self._changed = asyncio.Event()
        if not items:
            self.results.set_result([])

    def cancel(self) -> None:
        """Cancel the job after the client disconnected. Queued items are not decoded."""
        self.cancelled = True
        self._remove(self)
        if not self.results.cancel() and not self.results.cancelled():
            self.results.exception()  # asyncio would log an exception that is never retrieved

    def fail(self, reason: Exception) -> None:
        """Fail the job with this exception, unless it is complete."""
        if not self.results.done():
            self.results.set_exception(reason)
            self._changed.set()

    def deliver(self, index: int, result: Result) -> None:
        """Set the result of an item."""
        self.found[index] = result
        while self.n_ready in self.found:
            self.n_ready += 1
        if len(self.found) == len(self.items) and not self.results.done():
            self.results.set_result([self.found[at] for at in range(len(self.items))])
        self._changed.set()

    def wants_draft(self, index: int) -> bool:
        """Whether a draft of this item can be shown: the items before it have results."""
        return self.share is not None and index == self.n_ready and not self.cancelled

    def deliver_draft(self, index: int, draft: Draft) -> None:
        """Set the newest draft. A slow client may miss some of them."""
        self.draft = index, draft
        self._changed.set()

    async def updates(self) -> AsyncIterator[None]:
        """Yield after new results or drafts. Raise the exception of a job that failed."""
        while not self.results.done():
            await self._changed.wait()
            self._changed.clear()
            if not self.results.done():
                yield
        self.results.result()


# --- operations ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Translate:
    """Translate sentences, with `beam_size` outputs each."""

    transducer: Transducer
    """The model at the time of the request. A reload replaces it for later requests only."""
    beam: BeamConfig
    alignments: bool = False
    """Whether to compute word alignments, which are needed to place markup."""
    target_language: str | None = field(default=None, compare=False)
    """The target language, for a model that has several. The ids of a unit contain it, so units for
    different languages may be decoded in one batch."""
    glossary: Glossary | None = field(default=None, compare=False)
    """Required translations. A unit contains its terms."""

    @property
    def beam_size(self) -> int:
        """The width of the beam."""
        return self.beam.beam_size

    def units(self, sentences: Sequence[str]) -> list[list[Unit]]:
        """The units of each sentence. Only a sentence that is too long has several."""
        return self.transducer.units(sentences, **self._reading)

    @property
    def _reading(self) -> Options:
        return {
            "split": False,
            "target_language": self.target_language,
            "glossary": self.glossary,
        }

    def size(self, item: Unit) -> int:
        """The number of source tokens. An output has about the same number.

        Terms widen the beam, so they count as more tokens.
        """
        return (len(item.ids) + 1) * min(1 + len(item.terms), MOST_ROWS)

    def run(self, feed: ItemFeed[Unit]) -> Found[Outputs]:
        """Translate units. New units may arrive during decoding."""
        return self.transducer.translate_feed(
            feed,
            drafts=feed.draft,
            **asdict(self.beam),
            n_best=self.beam_size,
            alignments=self.alignments,
        )

    def joined(
        self,
        sentences: Sequence[str],
        units: Sequence[Sequence[Unit]],
        outputs: Iterable[Outputs],
    ) -> list[Translation]:
        """The translations of sentences, joined from the outputs of their units."""
        each = iter(outputs)
        return [
            join_units(sentence, parts, [next(each) for _ in parts], self.beam_size)
            for sentence, parts in zip(sentences, units, strict=True)
        ]


def join_units(
    sentence: str, units: Sequence[Unit], outputs: Sequence[Outputs], n_best: int
) -> Translation:
    """The translation of a sentence, joined from the outputs of its units."""
    each = [unit.sentence(found) for unit, found in zip(units, outputs, strict=True)]
    return Translation.best(sentence, each, n_best)


@dataclass(frozen=True)
class ScorePairs:
    """Compute the log-probability of given translations."""

    transducer: Transducer
    target_language: str | None
    """The target language, for a model that has several."""
    beam_size: ClassVar[int] = SEARCH.beam_size

    def size(self, item: tuple[str, str]) -> int:
        """The number of characters in source and target."""
        return 1 + sum(map(len, item))

    def run(self, feed: ItemFeed[tuple[str, str]]) -> Found[PairScore]:
        """The score of each pair of source and target."""
        pairs = feed(ALL)
        for source, target in pairs:
            _check_length(source, self.transducer.source_tokenizer, self.transducer)
            _check_length(target, self.transducer.target_tokenizer, self.transducer)
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        scores = self.transducer.score(
            sources, targets, lambda *_: _poll(feed), target_language=self.target_language
        )
        yield [*enumerate(scores)]


def _poll(feed: ItemFeed[Any]) -> None:
    """Request no item, so that the feed can raise an exception."""
    feed(0)


@dataclass(frozen=True)
class ShowAttention:
    """Return the attention weights of selected layers and heads."""

    transducer: Transducer
    target_language: str | None
    """The target language, for a model that has several."""
    limit: int
    """The maximum number of weights in a response."""
    beam_size: ClassVar[int] = 1

    def size(self, item: AttentionRequest) -> int:
        """Constant. Each item is decoded in its own batch, so its size is not used."""
        return 1

    def run(self, feed: ItemFeed[AttentionRequest]) -> Found[AttentionAnswer]:
        """The weights of one request. Batching would not be faster."""
        for item in feed(1):
            yield [(0, self._attend(item))]

    def _attend(self, item: AttentionRequest) -> AttentionAnswer:
        config = self.transducer.model.config
        layers = _numbers("layers", item.layers, min(config.n_layers, config.decoder_depth))
        heads = _numbers("heads", item.heads, config.n_heads)
        _check_length(item.q, self.transducer.source_tokenizer, self.transducer)
        _check_length(item.translation or "", self.transducer.target_tokenizer, self.transducer)
        seen = self.transducer.attend(item.q, item.translation, self.target_language)
        joined = seen.joined() if item.tokens == "words" else seen
        maps = {kind: _chosen(joined.of(kind), layers, heads) for kind in item.kinds}
        size = sum(one.weights.numel() for one in maps.values())
        if size > self.limit:
            raise DataError(
                f"{size:,} weights exceed the limit of {self.limit:,} per response; choose fewer "
                "kinds, layers or heads"
            )
        weights = {
            kind: msgspec.convert(one.described(), AttentionWeights) for kind, one in maps.items()
        }
        return AttentionAnswer(seen.source, seen.target, layers, heads, weights)


def _numbers(what: str, chosen: Sequence[int] | None, n: int) -> list[int]:
    """The selected numbers. Default: 1 to n."""
    if chosen and max(chosen) > n:
        raise DataError(f"{what}: the model has {n}, so {max(chosen)} is out of range")
    return sorted({*chosen}) if chosen else list(range(1, n + 1))


def _chosen(one: AttentionMap, layers: Sequence[int], heads: Sequence[int]) -> AttentionMap:
    at_layers, at_heads = ([number - 1 for number in chosen] for chosen in (layers, heads))
    return replace(one, weights=one.weights[at_layers][:, at_heads])


def _check_length(text: str, tokenizer: Tokenizer, transducer: Transducer) -> None:
    longest = transducer.max_source_length
    if (n_tokens := len(tokenizer.encode(text)) + 1) > longest:
        raise DataError(f"a sentence has {n_tokens:,} tokens; the model reads at most {longest:,}")


@dataclass(frozen=True)
class ParseTrees:
    """Parse sentences and return the best trees of each."""

    parser: Parser
    config: ParseConfig

    @property
    def beam_size(self) -> int:
        """The width of the beam."""
        return self.config.beam_size

    def size(self, item: str) -> int:
        """The number of characters in the sentence."""
        return 1 + len(item)

    def run(self, feed: ItemFeed[str]) -> Found[Parse]:
        """The parse of each sentence."""

        def watch(done: int, total: int | None) -> None:
            feed(0)

        try:
            yield [*enumerate(self.parser.parse(feed(ALL), **asdict(self.config), watch=watch))]
        except TooLongError as error:
            # The full message names a Python option and the index of the sentence in the batch,
            # which may contain sentences of other clients.
            raise DataError(f"{error.what}; send shorter ones") from error
