"""The table of paths: the handler of each, who may use it, its request and its answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from transept.apps.serve import messages as m
from transept.apps.serve.analysis import Analysis
from transept.apps.serve.backend import Backend
from transept.apps.serve.bodies import FORM, Refusal, parse, read_body
from transept.apps.serve.libretranslate import LibreTranslate
from transept.apps.serve.metrics import CONTENT_TYPE, Metrics
from transept.apps.serve.monitoring import Monitoring
from transept.apps.serve.protection import Keys
from transept.apps.serve.settings import ServerSettings
from transept.apps.serve.streaming import Streaming

Handler = Callable[..., Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]
Access = Literal["open", "key"]
"""Who may use a path: everyone, or only clients with a key if the server has keys."""
JSON, EVENTS, TEXT = "application/json", "text/event-stream", "text/plain"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One path."""

    path: str
    handler: Handler
    access: Access
    takes: type[msgspec.Struct] | None = None
    """The message in the request's body. None means that it is a GET request without a body."""
    gives: Any = None
    """The message in the answer. None leaves the path out of the OpenAPI document."""
    content_type: str = JSON
    faults: tuple[int, ...] = ()
    """The status codes of its errors, besides those that every path with a body or a key has."""

    @property
    def method(self) -> str:
        """The HTTP method."""
        return "GET" if self.takes is None else "POST"


def entries(backend: Backend, metrics: Metrics, keys: Keys) -> list[Entry]:
    """Every path except the static pages."""
    libre, monitoring = LibreTranslate(backend, keys.required), Monitoring(backend.batcher, metrics)
    own, busy = Analysis(backend), (429, 503)
    return [
        Entry(path="/translate", handler=libre.translate, access="key", takes=m.TranslateRequest,
              gives=m.TranslateAnswer, faults=busy),
        Entry(path="/detect", handler=libre.detect, access="key", takes=m.DetectRequest,
              gives=list[m.Detection]),
        Entry(path="/languages", handler=libre.languages, access="open", gives=list[m.Language]),
        Entry(path="/frontend/settings", handler=libre.frontend_settings, access="open",
              gives=m.FrontendSettings),
        Entry(path="/health", handler=monitoring.health, access="open", gives=m.Health,
              faults=(503,)),
        Entry(path="/api/stream", handler=Streaming(backend).stream, access="key",
              takes=m.StreamRequest, gives=m.StreamedPart, content_type=EVENTS,
              faults=(404, *busy)),
        Entry(path="/api/nbest", handler=own.n_best, access="key", takes=m.NBestRequest,
              gives=m.NBestAnswer, faults=(404, *busy)),
        Entry(path="/api/score", handler=own.score, access="key", takes=m.ScoreRequest,
              gives=m.ScoreAnswer, faults=(404, *busy)),
        Entry(path="/api/attention", handler=own.attention, access="key",
              takes=m.AttentionRequest, gives=m.AttentionAnswer, faults=(404, *busy)),
        Entry(path="/api/parse", handler=own.parse, access="key", takes=m.ParseRequest,
              gives=m.ParseAnswer, faults=(404, *busy)),
        Entry(path="/metrics", handler=monitoring.figures, access="key", gives=str,
              content_type=CONTENT_TYPE.partition(";")[0]),
        Entry(path="/livez", handler=monitoring.live, access="open", gives=m.Health),
        Entry(path="/readyz", handler=monitoring.ready, access="open", gives=m.Health,
              faults=(503,)),
    ]  # fmt: skip


def endpoint(entry: Entry, settings: ServerSettings, keys: Keys) -> Endpoint:
    """The function that answers a path: it reads the body, checks the key, calls the handler."""

    async def respond(request: Request) -> Response:
        message = None
        if entry.takes is not None:
            body = await read_body(request, settings.body_limit, settings.body_seconds)
            kind = request.headers.get("content-type", "")
            # Some clients of LibreTranslate send their fields in the address.
            if not body and request.url.query:
                body, kind = request.url.query.encode(), FORM
            message = parse(body, kind, entry.takes)
        if entry.access == "key":
            _check_key(request, message, keys)
        return await (
            entry.handler(request) if message is None else entry.handler(request, message)
        )

    return respond


def _check_key(request: Request, message: msgspec.Struct | None, keys: Keys) -> None:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    in_header = value.strip() if scheme.lower() == "bearer" else None
    key = in_header or getattr(message, "api_key", None)
    if not keys.accept(key):
        raise Refusal(403, "Invalid API key" if key else "An API key is needed")
