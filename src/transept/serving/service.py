"""What each path does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from transept.errors import TranseptError
from transept.serving import messages as m
from transept.serving.answers import answer, fault
from transept.serving.asks import Outputs, Score, Text, Translate
from transept.serving.batching import Ask, Batcher, Item, Job, OverloadedError, Result
from transept.serving.bodies import Refusal
from transept.serving.languages import Guess, guess, name_of
from transept.serving.metrics import CONTENT_TYPE, Metrics
from transept.serving.models import Models, Served
from transept.serving.settings import ServerSettings

T = TypeVar("T")


@dataclass(frozen=True)
class Service:
    """A server's parts, and its answers."""

    settings: ServerSettings
    models: Models
    batcher: Batcher
    metrics: Metrics
    key_required: bool

    # --- LibreTranslate's --------------------------------------------------------------------

    async def translate(self, request: Request, asked: m.TranslateRequest) -> Response:
        """Translate a text, or a list of texts."""
        queries = [asked.q] if isinstance(asked.q, str) else asked.q
        self._check_length(queries)
        source, guessed = self._source(queries, asked)
        if source == asked.target:
            best: list[str] = queries
            others: list[list[str]] = [[] for _ in queries]
        else:
            texts = self._texts(queries, asked.format, source)
            ask = self._ask(self._model(source, asked.target))
            n_best = 1 + min(asked.alternatives, ask.beam_size - 1)
            outputs = await self._results(
                request, ask, [sentence for text in texts for sentence in text.sentences]
            )
            best, others = _best_and_others(texts, outputs, n_best)
        is_list = not isinstance(asked.q, str)
        reply = m.TranslateAnswer(best if is_list else best[0])
        if asked.alternatives:
            reply.alternatives = others if is_list else others[0]
        if guessed is not None:
            found = m.Detection(guessed.language, guessed.confidence)
            reply.detected_language = [found] * len(queries) if is_list else found
        return answer(reply)

    async def detect(self, request: Request, asked: m.DetectRequest) -> Response:
        """Guess the language of a text, among those served."""
        queries = [asked.q] if isinstance(asked.q, str) else asked.q
        self._check_length(queries)
        guesses = guess("\n".join(queries), self.models.codes)
        return answer([m.Detection(one.language, one.confidence) for one in guesses])

    async def languages(self, request: Request) -> Response:
        """List the languages that can be translated, and to what."""
        return answer(
            [
                m.Language(code, name_of(code), self.models.targets(code))
                for code in self.models.sources
            ]
        )

    async def frontend_settings(self, request: Request) -> Response:
        """Say what a web page needs to know."""
        first = self.models.first
        pair = m.Pair(*(m.Named(code, name_of(code)) for code in (first.source, first.target)))
        return answer(
            m.FrontendSettings(
                char_limit=self.settings.char_limit,
                frontend_timeout=500,
                api_keys=self.key_required,
                key_required=self.key_required,
                suggestions=False,
                files_translation=False,
                supported_files_format=[],
                language=pair,
            )
        )

    async def health(self, request: Request) -> Response:
        """Say that all is well, or that it is not."""
        return await self.ready(request)

    # --- transept's own ----------------------------------------------------------------------

    async def stream(self, request: Request, asked: m.StreamRequest) -> Response:
        """Translate a text, and send the translation as it comes (server-sent events)."""
        model = self._only(asked.source, asked.target)
        self._check_length([asked.q])
        (text,) = self._texts([asked.q], asked.format, model.source)
        job = self._submit(self._ask(model), text.sentences)
        # A proxy that gathers answers would take away what streaming is for.
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(
            self._events(text, job), headers=headers, media_type="text/event-stream"
        )

    async def _events(self, text: Text, job: Job[str, Outputs]) -> AsyncIterator[bytes]:
        whole = ""
        try:
            async with asyncio.timeout(self.settings.deadline):
                async for part in stretches(text, job):
                    whole += part
                    yield _event("part", m.Part(part))
            yield _event("done", m.Part(whole))
        except TimeoutError:
            yield _event("error", m.Fault(self._too_slow))
        except TranseptError as error:
            yield _event("error", m.Fault(str(error)))
        finally:
            job.give_up()

    async def n_best(self, request: Request, asked: m.NBestRequest) -> Response:
        """Search for the best translations of a text, with their scores."""
        model = self._only(asked.source, asked.target)
        self._check_length([asked.q])
        beam_size = asked.beam_size or max(self.settings.beam_size, asked.n_best)
        if not asked.n_best <= beam_size <= self.settings.beam_limit:
            limit = self.settings.beam_limit
            what = f"n_best must be at most beam_size, and beam_size at most {limit}"
            raise Refusal(400, f"Invalid request: {what}")
        (text,) = self._texts([asked.q], asked.format, model.source)
        ask = self._ask(model, beam_size, asked.length_penalty)
        outputs = await self._results(request, ask, text.sentences)
        found = text.put_together(outputs, asked.n_best)
        return answer(
            m.NBestAnswer(
                model.source,
                model.target,
                [
                    m.Hypothesis(one.text, one.score, one.log_probability, one.finished)
                    for one in found.outputs
                ],
            )
        )

    async def score(self, request: Request, asked: m.ScoreRequest) -> Response:
        """Say how probable the model holds given translations to be."""
        model = self._only(asked.source, asked.target)
        sources = [asked.q] if isinstance(asked.q, str) else asked.q
        given = asked.translation
        targets = [given] if isinstance(given, str) else given
        if len(sources) != len(targets):
            raise Refusal(400, "Invalid request: each q needs one translation")
        self._check_length([*sources, *targets])
        self._check_count(len(sources))
        scores = await self._results(
            request, Score(model), list(zip(sources, targets, strict=True))
        )
        return answer(
            m.ScoreAnswer(
                [
                    m.ScoredPair(
                        one.log_probability, list(one.tokens), list(one.token_log_probabilities)
                    )
                    for one in scores
                ]
            )
        )

    async def not_yet(self, request: Request) -> Response:
        """Say that something is not there yet."""
        return fault(501, "this part of the server is not built yet")

    # --- for those who look after it ---------------------------------------------------------

    async def figures(self, request: Request) -> Response:
        """Give figures for Prometheus."""
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def live(self, request: Request) -> Response:
        """Say that the process answers."""
        return answer(m.Health())

    async def ready(self, request: Request) -> Response:
        """Say whether translations can be had."""
        return answer(m.Health()) if self.batcher.alive else fault(503, "the model does not work")

    # --- what they share ---------------------------------------------------------------------

    def _source(
        self, queries: Sequence[str], asked: m.TranslateRequest
    ) -> tuple[str, Guess | None]:
        """The language of the texts, and how it was guessed if it was."""
        if asked.target not in self.models.codes:
            raise Refusal(400, f"{asked.target} is not supported")
        if asked.source != "auto":
            if asked.source not in self.models.codes:
                raise Refusal(400, f"{asked.source} is not supported")
            return asked.source, None
        possible = [
            code
            for code in self.models.codes
            if code == asked.target or self.models.get(code, asked.target)
        ]
        best = guess("\n".join(queries), possible)[0]
        if not best.confidence:
            # Nothing was learnt from the text: then it is what can be translated.
            model = next((one for one in self.models if one.target == asked.target), None)
            best = Guess(model.source if model else asked.target, 0.0)
        return best.language, best

    def _model(self, source: str, target: str) -> Served:
        model = self.models.get(source, target)
        if model is None:
            raise Refusal(
                400,
                f"{name_of(target)} ({target}) is not available as a target language from "
                f"{name_of(source)} ({source})",
            )
        return model

    def _only(self, source: str | None, target: str | None) -> Served:
        """The model that is meant; what is not said is as in the first that fits."""
        for one in self.models:
            if source in (None, one.source) and target in (None, one.target):
                return one
        for code in (source, target):
            if code is not None and code not in self.models.codes:
                raise Refusal(400, f"{code} is not supported")
        return self._model(source or self.models.first.source, target or self.models.first.target)

    def _ask(
        self, model: Served, beam_size: int | None = None, length_penalty: float | None = None
    ) -> Translate:
        usual = self.settings
        return Translate(
            model,
            beam_size or usual.beam_size,
            usual.length_penalty if length_penalty is None else length_penalty,
        )

    def _check_length(self, texts: Sequence[str]) -> None:
        size, limit = sum(map(len, texts)), self.settings.char_limit
        if size > limit:
            raise Refusal(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")

    def _check_count(self, n_sentences: int) -> None:
        limit = self.settings.sentence_limit
        if n_sentences > limit:
            raise Refusal(
                400, f"Invalid request: request ({n_sentences}) exceeds sentence limit ({limit})"
            )

    def _texts(self, queries: Sequence[str], form: str, language: str) -> list[Text]:
        texts = [Text.of(query, form, language) for query in queries]
        self._check_count(sum(len(text.sentences) for text in texts))
        return texts

    def _submit(self, ask: Ask[Item, Result], items: Sequence[Item]) -> Job[Item, Result]:
        try:
            return self.batcher.submit(ask, items)
        except OverloadedError as error:
            raise Refusal(429, f"Slowdown: {error}", {"Retry-After": str(error.seconds)}) from None

    async def _results(
        self, request: Request, ask: Ask[Item, Result], items: Sequence[Item]
    ) -> list[Result]:
        """What comes of the items, while the client waits and time is left."""
        job = self._submit(ask, items)
        working = asyncio.ensure_future(job.results())
        leaving = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait(
                {working, leaving},
                timeout=self.settings.deadline,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if working.done():
                return working.result()
            if leaving.done():
                raise Refusal(499, "the client has gone")
            raise Refusal(503, self._too_slow, {"Retry-After": "10"})
        except TranseptError as error:
            raise Refusal(400, f"Invalid request: {error}") from None
        finally:
            working.cancel()
            leaving.cancel()
            job.give_up()

    @property
    def _too_slow(self) -> str:
        return f"it took longer than {self.settings.deadline:g} s; send less at a time"


async def stretches(text: Text, job: Job[str, Outputs]) -> AsyncIterator[str]:
    """The translation of a text, piece by piece: sentence by sentence."""
    outputs: list[Outputs] = []
    sent = ""
    pieces = iter(text.pieces)
    begun = 0
    async for found in job:
        outputs.append(found)
        for piece in pieces:
            begun += 1
            if piece.text:
                break
        grown = Text(text.source, text.pieces[:begun], text.is_html).put_together(outputs, 1).text
        yield grown[len(sent) :]
        sent = grown
    rest = text.put_together(outputs, 1).text[len(sent) :]
    if rest:
        yield rest


def _best_and_others(
    texts: Sequence[Text], outputs: Sequence[Outputs], n_best: int
) -> tuple[list[str], list[list[str]]]:
    """Of each text the best translation, and other ones that read differently."""
    each = iter(outputs)
    best, others = [], []
    for text in texts:
        found = text.put_together([next(each) for _ in text.sentences], n_best)
        first, *rest = dict.fromkeys(one.text for one in found.outputs)
        best.append(first)
        others.append(rest)
    return best, others


async def _gone(request: Request) -> None:
    """Wait until the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _event(name: str, message: msgspec.Struct) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(message))
