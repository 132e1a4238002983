"""What the handlers of all paths share: choosing a model, checking limits, waiting for results."""

import asyncio
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from transept.apps.serve.batching import Batcher, OverloadedError, StoppingError
from transept.apps.serve.bodies import Refusal
from transept.apps.serve.jobs import Item, Operation, Result, Stream
from transept.apps.serve.languages import name_of
from transept.apps.serve.models import Served, ServedModels, ServedParser
from transept.apps.serve.operations import Translate
from transept.apps.serve.settings import ServerSettings
from transept.apps.serve.texts import Outputs, Text
from transept.errors import TranseptError


@dataclass(frozen=True)
class Backend:
    """A server's models, its limits, and the thread that decodes."""

    settings: ServerSettings
    models: ServedModels
    batcher: Batcher

    # --- choosing a model --------------------------------------------------------------------

    def model(self, source: str, target: str) -> Served:
        """The model that translates from one language to another."""
        model = self.models.get(source, target)
        if model is None:
            raise Refusal(
                400,
                f"{name_of(target)} ({target}) is not available as a target language from "
                f"{name_of(source)} ({source})",
            )
        return model

    def model_meant(self, source: str | None, target: str | None) -> Served:
        """The first model with these languages; None fits any language."""
        for one in self.models:
            if source in (None, one.source) and target in (None, one.target):
                return one
        for code in (source, target):
            if code is not None and code not in self.models.codes:
                raise Refusal(400, f"{code} is not supported")
        if self.models.first is None:
            raise Refusal(404, "this server has no model that translates: start it with one")
        return self.model(source or self.models.first.source, target or self.models.first.target)

    def parser(self) -> ServedParser:
        """The model that parses."""
        if self.models.parser is None:
            what = "this server has no model that parses: start it with --model DIRECTORY of one"
            raise Refusal(404, what)
        return self.models.parser

    def translate(
        self,
        model: Served,
        texts: Sequence[Text],
        beam_size: int | None = None,
        length_penalty: float | None = None,
    ) -> Translate:
        """The operation that translates these texts; None stands for the server's setting."""
        usual = self.settings
        return Translate(
            model,
            beam_size or usual.beam_size,
            usual.length_penalty if length_penalty is None else length_penalty,
            alignments=any(text.is_marked for text in texts),
        )

    # --- checking limits ---------------------------------------------------------------------

    def check_length(self, texts: Sequence[str]) -> None:
        """Refuse a request with too many texts, or with too many characters."""
        n_texts, limit = len(texts), self.settings.text_limit
        if n_texts > limit:
            what = f"request ({n_texts}) exceeds limit of texts ({limit}); send fewer at a time"
            raise Refusal(400, f"Invalid request: {what}")
        size, limit = sum(map(len, texts)), self.settings.char_limit
        if size > limit:
            what = f"request ({size}) exceeds text limit ({limit}); send fewer characters at a time"
            raise Refusal(400, f"Invalid request: {what}")

    def check_count(self, n_sentences: int) -> None:
        """Refuse a request with too many sentences."""
        limit = self.settings.sentence_limit
        if n_sentences > limit:
            what = f"request ({n_sentences}) exceeds sentence limit ({limit}); send fewer at a time"
            raise Refusal(400, f"Invalid request: {what}")

    def check_beam(self, n_best: int, beam_size: int) -> None:
        """Refuse a beam that is too wide, or narrower than the number of outputs."""
        limit = self.settings.beam_limit
        if not n_best <= beam_size <= limit:
            what = f"n_best must be at most beam_size, and beam_size at most {limit}"
            raise Refusal(400, f"Invalid request: {what}")

    async def texts(self, queries: Sequence[str], form: str, language: str) -> list[Text]:
        """The texts, taken apart into sentences; refuse them if they are too long.

        A worker thread takes them apart, so that other requests are answered meanwhile.
        """
        self.check_length(queries)
        texts = await run_in_threadpool(
            lambda: [Text.of(query, form, language) for query in queries]
        )
        self.check_count(sum(len(text.sentences) for text in texts))
        return texts

    # --- waiting for results -----------------------------------------------------------------

    async def translations(
        self, request: Request, operation: Translate, sentences: Sequence[str]
    ) -> list[Outputs]:
        """The outputs of each sentence.

        A sentence that is too long for the model is cut, and each of its units waits in the queue
        like a sentence: as one item it would keep all others waiting.
        """
        units = await run_in_threadpool(operation.units, sentences)
        self.check_count(sum(map(len, units)))
        found = await self.results(request, operation, [unit for each in units for unit in each])
        return operation.joined(sentences, units, found)

    async def results(
        self, request: Request, operation: Operation[Item, Result], items: Sequence[Item]
    ) -> list[Result]:
        """The results of the items. Stop when the client disconnects or the deadline has passed."""
        try:
            job = self.batcher.submit(operation, items)
        except (OverloadedError, StoppingError) as error:
            raise _later(error) from None
        results = asyncio.ensure_future(job.results())
        disconnected = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait(
                {results, disconnected},
                timeout=self.settings.deadline,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if results.done():
                return results.result()
            if disconnected.done():
                raise Refusal(499, "the client has gone")
            raise Refusal(503, self.too_slow, {"Retry-After": "10"})
        except StoppingError as error:
            raise _later(error) from None
        except TranseptError as error:
            raise Refusal(400, f"Invalid request: {error}") from None
        finally:
            results.cancel()
            disconnected.cancel()
            job.cancel()

    def stream(self, steps: Generator[Result, None, None]) -> Stream[Result]:
        """Begin a stream that the client reads while it grows."""
        try:
            return self.batcher.open(steps)
        except (OverloadedError, StoppingError) as error:
            raise _later(error) from None

    @property
    def too_slow(self) -> str:
        """What a client is told when the deadline has passed."""
        return f"it took longer than {self.settings.deadline:g} s; send less at a time"


def _later(error: OverloadedError | StoppingError) -> Refusal:
    """The answer that tells a client to come back later."""
    if isinstance(error, StoppingError):
        return Refusal(503, str(error), {"Retry-After": "10"})
    return Refusal(429, f"Slowdown: {error}", {"Retry-After": str(error.seconds)})


async def _disconnected(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
