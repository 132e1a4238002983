"""Paths that look inside a translation: its words, other choices, and the beam search."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from transept.api.search_tree import SearchTree, search_tree
from transept.api.texts import Unit
from transept.api.transducer import Transducer
from transept.api.words import NextWord, WordedSentence, next_words, unit_words
from transept.apps.serve import messages as m
from transept.apps.serve.backend import Backend
from transept.apps.serve.models import Served
from transept.apps.serve.operations import ALL, Found, ItemFeed
from transept.decoding.config import BeamConfig, SearchConfig
from transept.errors import DataError, TooLongError


async def words(backend: Backend, request: Request, message: m.WordsRequest) -> m.WordsAnswer:
    """Translate a text, and return each word with its probability and its source words."""
    model = backend.model(message.source, message.target)
    backend.check_length([message.q + message.prefix])
    operation = ShowWords(model.transducer, backend.beam)
    units = await run_in_threadpool(_units, model, message)
    backend.check_count(len(units))
    prefixes = [message.prefix, *[""] * len(units)]
    found = await backend.results(request, operation, [*zip(units, prefixes, strict=False)])
    return m.WordsAnswer(
        [
            m.TranslatedSentence(
                one.source,
                one.text,
                [m.TranslatedWord(*word[:4], [*map(list, word.sources)]) for word in one.words],
            )
            for one in found
        ]
    )


def _units(model: Served, message: m.WordsRequest) -> list[Unit]:
    """The sentences of a text. With a prefix, it is one sentence."""
    language = model.source if model.source in ("de", "en", "fr") else "other"
    (units,) = model.transducer.units(
        [message.q],
        split=not message.prefix.strip(),
        source_language=language,  # type: ignore[arg-type]
        target_language=model.tag,
    )
    return units


async def choices(backend: Backend, request: Request, message: m.ChoicesRequest) -> m.ChoicesAnswer:
    """Return the most likely next words after the start of a translation."""
    model = backend.model(message.source, message.target)
    backend.check_length([message.q + message.prefix])
    operation = ListChoices(model.transducer, model.tag)
    (found,) = await backend.results(request, operation, [message])
    return m.ChoicesAnswer([m.WordChoice(*one) for one in found])


async def beam(backend: Backend, request: Request, message: m.BeamRequest) -> m.BeamAnswer:
    """Return the hypotheses of each step of the beam search for a sentence."""
    model = backend.model(message.source, message.target)
    backend.check_length([message.q])
    config = backend.search(SearchConfig(**asdict(backend.beam)), message)
    operation = RecordSearch(model.transducer, model.tag, config)
    (tree,) = await backend.results(request, operation, [message.q])
    steps = [m.BeamStep([m.BeamHypothesis(*one) for one in step]) for step in tree.steps]
    return m.BeamAnswer(steps, tree.winner, tree.reason)


@dataclass(frozen=True)
class ShowWords:
    """Translate units, each with the prefix of its translation, and describe the words."""

    transducer: Transducer
    beam: BeamConfig

    @property
    def beam_size(self) -> int:
        """The width of the beam."""
        return self.beam.beam_size

    def size(self, item: tuple[Unit, str]) -> int:
        """The number of source tokens."""
        return len(item[0].ids) + 1

    def run(self, feed: ItemFeed[tuple[Unit, str]]) -> Found[WordedSentence]:
        """The words of each unit."""
        if items := feed(ALL):
            units, prefixes = zip(*items, strict=True)
            watch = partial(_poll, feed)
            found = unit_words(self.transducer, units, prefixes, self.beam, watch)
            yield [*enumerate(found)]


def _poll(feed: ItemFeed[Any], done: int, total: int | None) -> None:
    """Request no item, so that the feed can raise an exception."""
    feed(0)


@dataclass(frozen=True)
class ListChoices:
    """Find the next words."""

    transducer: Transducer
    target_language: str | None
    """The target language, for a model that has several."""
    beam_size: ClassVar[int] = 1

    def size(self, item: m.ChoicesRequest) -> int:
        """Constant. Each request is decoded in its own batch, so its size is not used."""
        return 1

    def run(self, feed: ItemFeed[m.ChoicesRequest]) -> Found[list[NextWord]]:
        """The next words of one request."""
        for item in feed(1):
            language = self.target_language
            with _shorter():
                found = next_words(
                    self.transducer, item.q, item.prefix, item.n, target_language=language
                )
            yield [(0, found)]


@dataclass(frozen=True)
class RecordSearch:
    """Record the beam search."""

    transducer: Transducer
    target_language: str | None
    """The target language, for a model that has several."""
    config: SearchConfig

    @property
    def beam_size(self) -> int:
        """The width of the beam."""
        return self.config.beam_size

    def size(self, item: str) -> int:
        """Constant. Each sentence is decoded in its own batch, so its size is not used."""
        return 1

    def run(self, feed: ItemFeed[str]) -> Found[SearchTree]:
        """The tree of one sentence."""
        for item in feed(1):
            with _shorter():
                found = search_tree(
                    self.transducer,
                    item,
                    self.config,
                    partial(_poll, feed),
                    target_language=self.target_language,
                )
            yield [(0, found)]


@contextmanager
def _shorter() -> Iterator[None]:
    """Replace the advice of an error, which is for users of the Python API."""
    try:
        yield
    except TooLongError as error:
        raise DataError("the sentence is too long for the model; send a shorter one") from error
