"""The handler of each path: a message in, a message out.

The OpenAPI document takes the summary of a path from its handler's docstring, and the schemas from
the types of the handler's message and result.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from transept.api.documents import FORMS, Document
from transept.api.parses import ParseConfig
from transept.api.texts import Draft
from transept.apps.serve import messages as m
from transept.apps.serve.backend import Backend, seconds_left
from transept.apps.serve.envelope import FAILED, Refusal
from transept.apps.serve.models import Served, guess, guess_each
from transept.apps.serve.operations import Job, ParseTrees, ScorePairs, ShowAttention, Translate
from transept.apps.serve.streaming import drafts_of
from transept.decoding.config import SearchConfig
from transept.documents.opening import SUFFIXES
from transept.errors import DataError, TranseptError
from transept.text.glossary import Glossary
from transept.text.languages import name_of
from transept.text.markup import text_of
from transept.text.trees import PLACEHOLDER, Bracket, Tree

METRICS_VERSION = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


def _listed(texts: m.Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


# --- LibreTranslate's API --------------------------------------------------------------------


async def translate(
    backend: Backend, request: Request, message: m.TranslateRequest
) -> m.TranslateAnswer:
    """Translate a text or a list of texts."""
    queries = _listed(message.q)
    backend.check_length(queries)
    guesses = await _guesses(backend, queries, message)
    sources = [one.language for one in guesses] or [message.source] * len(queries)
    # A text in the target language is returned unchanged.
    best, others = [*queries], [list[str]() for _ in queries]
    missing = [list[str]() for _ in queries]
    for source in dict.fromkeys(sources):
        if source != message.target:
            chosen = [i for i, one in enumerate(sources) if one == source]
            given = [queries[i] for i in chosen]
            found = await _translations(backend, request, given, source, message)
            for i, each in zip(chosen, found, strict=True):
                (best[i], *others[i]), missing[i] = each.texts, each.missing
    is_list = not isinstance(message.q, str)
    reply = m.TranslateAnswer(best if is_list else best[0])
    if message.alternatives:
        reply.alternatives = others if is_list else others[0]
    if message.source == "auto":
        reply.detected_language = guesses if is_list else guesses[0]
    if any(missing):
        reply.missing_terms = missing if is_list else missing[0]
    return reply


class Translated(NamedTuple):
    """The distinct translations of a text, best first, and terms that the best lacks."""

    texts: list[str]
    missing: list[str]


async def _translations(
    backend: Backend,
    request: Request,
    queries: Sequence[str],
    source: str,
    message: m.TranslateRequest,
) -> list[Translated]:
    """The translations of each text. All texts are in one language.

    Through the pivot, the best translation into it is translated again.
    """
    found = [Translated([query], []) for query in queries]
    models = backend.models.route(source, message.target)
    glossary = _glossary(message, models)
    for model in models:
        best = [each.texts[0] for each in found]
        texts = await backend.texts(best, message.format or "text", model.source)
        operation = backend.translate(model, texts, glossary=glossary)
        n_best = 1 + (message.alternatives or 0)
        found = await _translated(backend, request, operation, texts, n_best)
    return found


def _glossary(
    message: m.TranslateRequest | m.StreamRequest, models: Sequence[Served]
) -> Glossary | None:
    """The glossary of a request, if it has one."""
    if not message.glossary and not message.keep:
        return None
    if len(models) > 1:
        pair, pivot = f"{models[0].source}-{models[-1].target}", models[0].target
        raise Refusal(400, f"{pair} is translated through {pivot}, which excludes a glossary")
    return Glossary.of(message.glossary, message.keep)


async def _translated(
    backend: Backend,
    request: Request,
    operation: Translate,
    texts: Sequence[Document],
    n_best: int = 1,
) -> list[Translated]:
    """The translations of each text by one model."""
    n_best = min(n_best, operation.beam_size)
    sentences = [sentence for text in texts for sentence in text.sentences]
    outputs = iter(await backend.translations(request, operation, sentences))
    found = [text.assemble([next(outputs) for _ in text.sentences], n_best) for text in texts]
    return [
        Translated([*dict.fromkeys(one.text for one in each.outputs)], [*each.outputs[0].missing])
        for each in found
    ]


async def _guesses(
    backend: Backend, queries: Sequence[str], message: m.TranslateRequest
) -> list[m.Detection]:
    """The detected language of each text. Empty if the request names the language."""
    models = backend.models
    targets, sources = models.codes, [*models.codes, "auto"]
    for code, known in ((message.target, targets), (message.source, sources)):
        if code not in known:
            raise Refusal(400, f"{code} is not supported")
    if message.source != "auto":
        return []
    possible = [
        code for code in models.codes if code == message.target or models.legs(code, message.target)
    ]
    # A text whose language cannot be detected is assumed to be translatable.
    model = next((one for one in models if one.target == message.target), None)
    unknown = m.Detection(model.source if model else message.target, 0.0)
    form = FORMS[message.format or "text"]
    guesses = await run_in_threadpool(
        lambda: guess_each([text_of(query, form) for query in queries], possible)
    )
    return [one if one.confidence else unknown for one in guesses]


async def detect(backend: Backend, request: Request, message: m.DetectRequest) -> list[m.Detection]:
    """Detect the language of a text among the served languages."""
    queries = _listed(message.q)
    backend.check_length(queries)
    codes = backend.models.codes
    return await run_in_threadpool(guess, "\n".join(queries), codes, message.others)


async def languages(backend: Backend, request: Request) -> list[m.Language]:
    """List the languages and the target languages of each."""
    models = backend.models
    return [m.Language(code, name_of(code), models.targets(code)) for code in models.codes]


async def frontend_settings(backend: Backend, request: Request) -> m.FrontendSettings:
    """Return the features of the server, for a web page."""
    first = backend.models.first
    codes = (first.source, first.target) if first else ()
    named = [m.NamedLanguage(code, name_of(code)) for code in codes]
    return m.FrontendSettings(
        char_limit=backend.settings.char_limit,
        frontend_timeout=500,
        api_keys=backend.keys.required,
        key_required=backend.keys.required,
        suggestions=False,
        files_translation=not backend.settings.no_files,
        supported_files_format=[] if backend.settings.no_files else [*SUFFIXES],
        language=m.LanguagePair(*named) if named else None,
    )


async def health(backend: Backend, request: Request) -> m.Health:
    """Report whether the server can translate."""
    if not backend.batcher.alive:
        raise Refusal(503, "the decoding thread is not running")
    return m.Health()


async def metrics(backend: Backend, request: Request) -> PlainTextResponse:
    """Return the metrics for Prometheus."""
    return PlainTextResponse(backend.metrics.text(), headers=METRICS_VERSION)


async def models(backend: Backend, request: Request) -> list[m.ModelDescription]:
    """List the models that translate, and where they come from."""
    return [
        m.ModelDescription(
            pairs[0].source,
            [one.target for one in pairs],
            pairs[0].transducer.engine.name,
            **pairs[0].origin,
        )
        for pairs in backend.models.by_model()
    ]


# --- streaming -------------------------------------------------------------------------------


class EventResponse(StreamingResponse):
    """Server-sent events, which end if the client disconnects or at the deadline.

        event: part
        data: {"text": "Guten ", "tail": "Morgen"}

    The concatenated `text` fields of all parts are the translation, so a client can print them as
    they arrive. `tail` is the current continuation. The next part may change it. The event `done`
    contains the complete translation. The event `error` ends a stream that failed.
    """

    media_type = "text/event-stream"

    def __init__(self, job: Job[Any, Any], events: AsyncIterator[bytes], deadline: float) -> None:
        self._job, self._deadline = job, deadline
        # A proxy that buffers responses would send the whole translation at once.
        super().__init__(events, headers={"X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events.

        The job is cancelled here and not in the event generator: if the client has already
        disconnected, the generator never starts and would not clean up.
        """
        loop = asyncio.get_running_loop()
        due = loop.call_later(self._deadline, self._job.fail, TimeoutError())
        try:
            await super().__call__(scope, receive, send)
        finally:
            due.cancel()
            self._job.cancel()


async def stream(backend: Backend, request: Request, message: m.StreamRequest) -> EventResponse:
    """Translate a text and stream the translation as it grows (server-sent events)."""
    *before, model = models = backend.route(message.source, message.target)
    glossary = _glossary(message, models)
    search, query = backend.search(_usual(backend), message), message.q
    backend.check_length([query])
    for first in before:
        texts = await backend.texts([query], message.format, first.source)
        operation = backend.translate(first, texts, search)
        (found,) = await _translated(backend, request, operation, texts)
        query = found.texts[0]
    (text,) = await backend.texts([query], message.format, model.source)
    operation = backend.translate(model, [text], search, glossary)
    units = await backend.units(operation, text.sentences)
    items = [unit for each in units for unit in each]
    job = backend.batcher.submit(operation, items, streamed=True)
    drafts = drafts_of(job, text, units)
    events = _events(drafts, len(text.sentences), backend.too_slow)
    return EventResponse(job, events, seconds_left(request))


def _usual(backend: Backend) -> SearchConfig:
    return SearchConfig(**asdict(backend.beam))


async def _events(
    drafts: AsyncIterator[Draft], n_sentences: int, too_slow: str
) -> AsyncIterator[bytes]:
    sent, tail, whole = 0, "", ""
    missing: tuple[str, ...] = ()
    try:
        async for draft in drafts:
            whole, missing, before = draft.text, draft.missing, (sent, tail)
            # Text that was sent cannot be revised, even if a later draft differs from it.
            fresh, sent = whole[sent : draft.stable], max(sent, draft.stable)
            tail = whole[sent:]
            if (sent, tail) != before:
                yield _event("part", m.StreamedPart(fresh, tail))
        yield _event("done", m.Whole(whole, n_sentences, missing or UNSET))
    except TimeoutError:
        yield _event("error", m.ErrorAnswer(too_slow))
    except TranseptError as error:
        yield _event("error", m.ErrorAnswer(str(error)))
    except Exception:
        yield _event("error", m.ErrorAnswer(FAILED))
        raise


def _event(name: str, message: msgspec.Struct) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(message))


# --- n-best lists, scores, attention, parses -------------------------------------------------


async def n_best(backend: Backend, request: Request, message: m.NBestRequest) -> m.NBestAnswer:
    """Return the best translations of a text with their scores."""
    model = backend.model(message.source, message.target)
    search = backend.search(_usual(backend), message)
    backend.check_length([message.q])
    (text,) = await backend.texts([message.q], message.format, model.source)
    operation = backend.translate(model, [text], search)
    translations = await backend.translations(request, operation, text.sentences)
    found = text.assemble(translations, search.n_best).outputs
    ranked = msgspec.convert(found, list[m.RankedTranslation], from_attributes=True)
    return m.NBestAnswer(model.source, model.target, ranked)


async def score(backend: Backend, request: Request, message: m.ScoreRequest) -> m.ScoreAnswer:
    """Score given translations by their probability."""
    model = backend.model(message.source, message.target)
    sources, targets = _listed(message.q), _listed(message.translation)
    if len(sources) != len(targets):
        raise DataError("each q needs one translation")
    pairs = list(zip(sources, targets, strict=True))
    backend.check_length(["".join(pair) for pair in pairs])
    operation = ScorePairs(model.transducer, model.tag)
    return m.ScoreAnswer(await backend.results(request, operation, pairs))


async def attention(
    backend: Backend, request: Request, message: m.AttentionRequest
) -> m.AttentionAnswer:
    """Return the attention weights for a sentence and its translation."""
    model = backend.model(message.source, message.target)
    backend.check_length([message.q + (message.translation or "")])
    operation = ShowAttention(model.transducer, model.tag, backend.settings.weight_limit)
    (seen,) = await backend.results(request, operation, [message])
    return seen


async def parse(backend: Backend, request: Request, message: m.ParseRequest) -> m.ParseAnswer:
    """Parse a sentence or a list of sentences into constituency trees."""
    parser = backend.parser().parser
    search = backend.search(ParseConfig(), message)
    sentences = _listed(message.q)
    backend.check_length(sentences)
    parses = await backend.results(request, ParseTrees(parser, search), sentences)
    return m.ParseAnswer(
        [
            m.Parsed(
                list(one.words),
                [
                    m.ParsedTree(
                        str(output.tree),
                        _nested(output.tree),
                        output.score,
                        output.log_probability,
                        output.confidence,
                    )
                    for output in one.outputs
                ],
            )
            for one in parses
        ]
    )


def _nested(tree: Tree) -> m.Node:
    """A tree as nested nodes. The leaves contain the words."""
    top: list[m.Node] = []
    unfinished = [(top, len(tree.words))]
    brackets = iter([*tree.brackets, Bracket("", len(tree.words), len(tree.words))])
    bracket = next(brackets)
    for place, (tag, word) in enumerate(zip(tree.tags, tree.words, strict=True)):
        while unfinished[-1][1] <= place:
            unfinished.pop()
        while bracket.start <= place:
            children: list[m.Node] = []
            unfinished[-1][0].append(m.Node(bracket.label, children=children))
            unfinished.append((children, bracket.end))
            bracket = next(brackets)
        unfinished[-1][0].append(m.Node(tag, word=word))
    return top[0] if len(top) == 1 else m.Node(PLACEHOLDER, children=top)


# --- training runs ---------------------------------------------------------------------------


async def runs(backend: Backend, request: Request) -> list[m.RunDescription]:
    """List the training runs that the server follows."""
    followed = backend.runs.values()
    return await run_in_threadpool(
        lambda: [m.RunDescription(run.name, run.summary()) for run in followed]
    )


async def run_metrics(backend: Backend, request: Request) -> m.RunLines:
    """Return the lines of a training run's log, from a number on."""
    run = backend.runs.get(request.path_params["name"])
    if run is None:
        raise Refusal(404, "this server follows no such run")
    first = request.query_params.get("from", "0")
    if not (first.isascii() and first.isdigit() and len(first) < 16):
        raise Refusal(400, "Invalid request: `from` must be the number of a line, from 0")
    return await run_in_threadpool(run.lines, int(first))
