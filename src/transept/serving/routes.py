"""The table of paths: what each does, who may ask, what goes in and what comes out."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from transept.serving import messages as m
from transept.serving.analysis import Analysis
from transept.serving.bodies import FORM, Refusal, parse, read_body
from transept.serving.care import Care
from transept.serving.libretranslate import LibreTranslate
from transept.serving.metrics import CONTENT_TYPE, Metrics
from transept.serving.protection import Keys
from transept.serving.settings import ServerSettings
from transept.serving.streaming import Streaming
from transept.serving.work import Work

Handler = Callable[..., Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]
Access = Literal["open", "key"]
"""Whether everyone may ask, or only those with a key where there are keys."""
JSON, EVENTS, TEXT = "application/json", "text/event-stream", "text/plain"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One path."""

    path: str
    handler: Handler
    access: Access
    takes: type[msgspec.Struct] | None = None
    """The message in its body; None is a GET without one."""
    gives: Any = None
    """The message in its answer; None is a path that is not described."""
    content_type: str = JSON
    faults: tuple[int, ...] = ()
    """The errors that it can answer with, besides those of every path like it."""

    @property
    def method(self) -> str:
        """How it is asked."""
        return "GET" if self.takes is None else "POST"


def entries(work: Work, metrics: Metrics, keys: Keys) -> list[Entry]:
    """Every path but the pages."""
    libre, care = LibreTranslate(work, keys.required), Care(work.batcher, metrics)
    own, busy = Analysis(work), (429, 503)
    return [
        Entry(path="/translate", handler=libre.translate, access="key", takes=m.TranslateRequest,
              gives=m.TranslateAnswer, faults=busy),
        Entry(path="/detect", handler=libre.detect, access="key", takes=m.DetectRequest,
              gives=list[m.Detection]),
        Entry(path="/languages", handler=libre.languages, access="open", gives=list[m.Language]),
        Entry(path="/frontend/settings", handler=libre.frontend_settings, access="open",
              gives=m.FrontendSettings),
        Entry(path="/health", handler=care.health, access="open", gives=m.Health, faults=(503,)),
        Entry(path="/api/stream", handler=Streaming(work).stream, access="key",
              takes=m.StreamRequest, gives=m.Part, content_type=EVENTS, faults=(404, *busy)),
        Entry(path="/api/nbest", handler=own.n_best, access="key", takes=m.NBestRequest,
              gives=m.NBestAnswer, faults=(404, *busy)),
        Entry(path="/api/score", handler=own.score, access="key", takes=m.ScoreRequest,
              gives=m.ScoreAnswer, faults=(404, *busy)),
        Entry(path="/api/attention", handler=own.attention, access="key",
              takes=m.AttentionRequest, gives=m.AttentionAnswer, faults=(404, *busy)),
        Entry(path="/api/parse", handler=own.parse, access="key", takes=m.ParseRequest,
              gives=m.ParseAnswer, faults=(404, *busy)),
        Entry(path="/metrics", handler=care.figures, access="key", gives=str,
              content_type=CONTENT_TYPE.partition(";")[0]),
        Entry(path="/livez", handler=care.live, access="open", gives=m.Health),
        Entry(path="/readyz", handler=care.ready, access="open", gives=m.Health, faults=(503,)),
    ]  # fmt: skip


def endpoint(entry: Entry, settings: ServerSettings, keys: Keys) -> Endpoint:
    """What answers a path: reads the body, asks for the key, and only then begins."""

    async def respond(request: Request) -> Response:
        message = None
        if entry.takes is not None:
            body = await read_body(request, settings.body_limit, settings.body_seconds)
            kind = request.headers.get("content-type", "")
            if not body and request.url.query:  # as some clients of LibreTranslate send it
                body, kind = request.url.query.encode(), FORM
            message = parse(body, kind, entry.takes)
        if entry.access == "key":
            _ask_for_key(request, message, keys)
        return await (
            entry.handler(request) if message is None else entry.handler(request, message)
        )

    return respond


def _ask_for_key(request: Request, message: msgspec.Struct | None, keys: Keys) -> None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    in_header = value.strip() if scheme.lower() == "bearer" else None
    key = in_header or getattr(message, "api_key", None)
    if not keys.accept(key):
        raise Refusal(403, "Invalid API key" if key else "An API key is needed")
