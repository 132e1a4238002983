"""Shared by all handlers: choosing a model, checking limits, waiting for results."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from transept.api.config import Format
from transept.api.documents import Document
from transept.api.texts import Translation, Unit
from transept.apps.serve.access import RateLimit
from transept.apps.serve.batching import Batcher
from transept.apps.serve.envelope import CLOSING, Keys, Metrics, Refusal
from transept.apps.serve.messages import BeamOptions
from transept.apps.serve.models import Served, ServedModels, ServedParser
from transept.apps.serve.operations import Item, Operation, Result, Translate
from transept.apps.serve.runs import FollowedRun
from transept.apps.serve.settings import ServerSettings
from transept.decoding.config import BeamConfig, SearchConfig
from transept.errors import DataError
from transept.text.glossary import Glossary

Config = TypeVar("Config", bound=SearchConfig)

SHORT = 500
"""The maximum number of characters that are encoded on the event loop. It takes a millisecond."""
LARGEST_PENALTY = 10.0
"""The largest length penalty of a request. Much larger values would overflow a float."""


@dataclass(frozen=True)
class Backend:
    """The models, limits, decoding thread, keys and metrics of a server."""

    settings: ServerSettings
    models: ServedModels
    batcher: Batcher
    keys: Keys
    metrics: Metrics
    rate_limit: RateLimit
    runs: Mapping[str, FollowedRun] = field(default_factory=dict)
    """The training runs that a dashboard follows, by name."""

    def admit(self, request: Request) -> None:
        """Reject a request of a client that sent too many."""
        if seconds := self.rate_limit.wait(request):
            what = f"Slowdown: {self.settings.rate_limit} per 1 minute"
            raise Refusal(429, what, {"Retry-After": str(seconds)} | CLOSING)

    # --- choosing a model and a search -------------------------------------------------------

    def route(self, source: str | None, target: str | None) -> tuple[Served, ...]:
        """The first model with these languages, or the two through the pivot.

        None matches any language.
        """
        first = self.models.first
        if first is None:
            raise Refusal(404, "this server has no model that translates")
        for one in self.models:
            if source in (None, one.source) and target in (None, one.target):
                return (one,)
        return self.models.route(source or first.source, target or first.target)

    def model(self, source: str | None, target: str | None) -> Served:
        """The first model with these languages, for results that only a single model has."""
        model, *others = self.route(source, target)
        if others:
            raise Refusal(
                400,
                f"{model.source}-{others[0].target} is translated through {model.target}, so it "
                f"has no scores and no attention; request {model} and {others[0]} separately",
            )
        return model

    def parser(self) -> ServedParser:
        """The model that parses."""
        if self.models.parser is None:
            raise Refusal(404, "this server has no model that parses")
        return self.models.parser

    @property
    def beam(self) -> BeamConfig:
        """The default beam."""
        size, penalty = self.settings.beam_size, self.settings.length_penalty
        return BeamConfig(beam_size=size, length_penalty=penalty)

    def search(self, usual: Config, asked: BeamOptions) -> Config:
        """The search configuration: the defaults, overridden by the options of a request."""
        given = {one.name: getattr(asked, one.name, None) for one in fields(usual)}
        options = {name: value for name, value in given.items() if value is not None}
        limit = self.settings.beam_limit
        options.setdefault("beam_size", max(min(usual.beam_size, limit), options.get("n_best", 1)))
        search = replace(usual, **options)
        if search.beam_size > limit or search.length_penalty > LARGEST_PENALTY:
            raise DataError(
                f"beam_size must be at most {limit}, length_penalty {LARGEST_PENALTY:g}"
            )
        return search

    def translate(
        self,
        model: Served,
        texts: Sequence[Document],
        beam: BeamConfig | None = None,
        glossary: Glossary | None = None,
    ) -> Translate:
        """The operation that translates these texts. The beam defaults to the server's."""
        beam = beam or self.beam
        return Translate(
            model.transducer,
            BeamConfig(beam_size=beam.beam_size, length_penalty=beam.length_penalty),
            alignments=any(text.is_marked for text in texts),
            target_language=model.tag,
            glossary=glossary,
        )

    # --- checking limits ---------------------------------------------------------------------

    def check_length(self, texts: Sequence[str]) -> None:
        """Reject a request with too many texts or characters."""
        self.check_count(len(texts))
        size, limit = sum(map(len, texts)), self.settings.char_limit
        if size > limit:
            raise DataError(
                f"request ({size}) exceeds text limit ({limit}); send fewer characters at a time"
            )

    def check_count(self, n_sentences: int) -> None:
        """Reject a request with too many sentences."""
        limit = self.settings.sentence_limit
        if n_sentences > limit:
            raise DataError(
                f"request ({n_sentences}) exceeds sentence limit ({limit}); send fewer at a time"
            )

    async def texts(self, queries: Sequence[str], format: Format, language: str) -> list[Document]:
        """Split the texts into sentences. Reject them if there are too many.

        A worker thread splits them, so that the event loop can handle other requests.
        """
        texts = await run_in_threadpool(
            lambda: [Document.of(query, format, language) for query in queries]
        )
        self.check_count(sum(len(text.sentences) for text in texts))
        return texts

    async def units(self, operation: Translate, sentences: Sequence[str]) -> list[list[Unit]]:
        """Encode sentences. Reject them if they have too many units."""
        if sum(map(len, sentences)) <= SHORT:
            units = operation.units(sentences)  # a change of threads would take longer
        else:
            units = await run_in_threadpool(operation.units, sentences)
        self.check_count(sum(map(len, units)))
        return units

    # --- waiting for results -----------------------------------------------------------------

    async def translations(
        self, request: Request, operation: Translate, sentences: Sequence[str]
    ) -> list[Translation]:
        """Translate sentences.

        A sentence that is too long for the model is split into units. Each unit is queued like a
        sentence, because a single long item would block all others.
        """
        units = await self.units(operation, sentences)
        found = await self.results(request, operation, [unit for each in units for unit in each])
        return operation.joined(sentences, units, found)

    async def results(
        self, request: Request, operation: Operation[Item, Result], items: Sequence[Item]
    ) -> list[Result]:
        """Wait for the results. Stop if the client disconnects or at the request's deadline."""
        job = self.batcher.submit(operation, items)
        disconnected = asyncio.ensure_future(_disconnected(request))
        either: set[asyncio.Future[Any]] = {job.results, disconnected}
        try:
            await asyncio.wait(
                either, timeout=seconds_left(request), return_when=asyncio.FIRST_COMPLETED
            )
            if job.results.done():
                return job.results.result()
            if disconnected.done():
                raise Refusal(499, "the client disconnected")
            raise Refusal(503, self.too_slow, {"Retry-After": "10"})
        finally:
            disconnected.cancel()
            job.cancel()

    @property
    def too_slow(self) -> str:
        """The error message after the deadline."""
        return f"the request took longer than {self.settings.deadline:g} s; send less at a time"


def set_deadline(request: Request, seconds: float) -> None:
    """Start the time of a request. It includes both models of a route through the pivot."""
    request.state.due = asyncio.get_running_loop().time() + seconds


def seconds_left(request: Request) -> float:
    """The time until the deadline of a request. It may be negative."""
    due: float = request.state.due
    return due - asyncio.get_running_loop().time()


async def _disconnected(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
