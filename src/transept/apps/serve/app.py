"""The path table, the ASGI application, and its OpenAPI document."""

import ast
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_type_hints

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from transept.apps.serve import handlers as h
from transept.apps.serve import inside
from transept.apps.serve.access import RateLimit
from transept.apps.serve.backend import Backend, set_deadline
from transept.apps.serve.batching import Batcher, OverloadedError, StoppingError
from transept.apps.serve.envelope import (
    Envelope,
    Keys,
    Metrics,
    Refusal,
    answer,
    fault,
    read_message,
)
from transept.apps.serve.files import FileService, FileStore, file_paths
from transept.apps.serve.messages import ErrorAnswer
from transept.apps.serve.models import AnyServed, MissingPairError, ServedModels
from transept.apps.serve.runs import open_runs
from transept.apps.serve.settings import ServerSettings
from transept.decoding.config import SearchConfig
from transept.errors import TranseptError
from transept.version import __version__

Access = Literal["open", "key"]
"""Access to a path: for everyone, or only with a key if the server has keys."""


@dataclass(frozen=True)
class Entry:
    """One path."""

    path: str
    handler: Callable[..., Awaitable[Any]]
    access: Access

    @property
    def takes(self) -> type[msgspec.Struct] | None:
        """The type of the request body. None means a GET request without a body."""
        return get_type_hints(self.handler).get("message")

    @property
    def gives(self) -> Any:
        """The type of the message in the response, or of the response if it is not JSON."""
        return get_type_hints(self.handler)["return"]

    @property
    def content_type(self) -> str:
        """The content type of the response."""
        return getattr(self.gives, "media_type", JSON)


JSON = "application/json"
RUN_METRICS = "/api/runs/{name}/metrics"
PARAMETERS = {
    RUN_METRICS: [
        {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
        {
            "name": "from",
            "in": "query",
            "description": "The number of the first line, from 0.",
            "schema": {"type": "integer", "minimum": 0, "default": 0},
        },
    ]
}
"""The parameters of a path that are not in a body."""
PATHS = (
    Entry("/translate", h.translate, "key"),
    Entry("/detect", h.detect, "key"),
    Entry("/languages", h.languages, "open"),
    Entry("/frontend/settings", h.frontend_settings, "open"),
    Entry("/health", h.health, "open"),
    Entry("/api/models", h.models, "open"),
    Entry("/api/stream", h.stream, "key"),
    Entry("/api/nbest", h.n_best, "key"),
    Entry("/api/score", h.score, "key"),
    Entry("/api/attention", h.attention, "key"),
    Entry("/api/words", inside.words, "key"),
    Entry("/api/choices", inside.choices, "key"),
    Entry("/api/beam", inside.beam, "key"),
    Entry("/api/parse", h.parse, "key"),
    Entry("/api/runs", h.runs, "key"),
    Entry(RUN_METRICS, h.run_metrics, "key"),
    Entry("/metrics", h.metrics, "key"),
)
PAGES = {
    "/": "serve/pages/index.html",
    "/docs": "serve/pages/docs.html",
    "/runs": "serve/pages/runs.html",
}
STATIC = ("serve/pages", "explorer")
"""Folders of `transept.apps` whose scripts, styles and pictures are served below `/static`."""
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


def create_app(
    settings: ServerSettings,
    served: Sequence[AnyServed],
    pivot: str | None = None,
    runs: Sequence[Path] = (),
) -> Starlette:
    """The application that serves these models.

    The process uses `app.state.models` to reload them, and `app.state.batcher` to abort requests.

    Args:
        settings: Access to the server, and its limits.
        served: The models. Requests without languages use the first one that translates.
        pivot: The language through which to translate if no model serves a pair.
        runs: The directories of training runs that a dashboard follows.
    """
    keys, metrics, models = Keys.read(settings.key_file), Metrics(), ServedModels(served, pivot)
    batcher = Batcher(settings, metrics.decoded)
    metrics.watch(lambda: batcher.waiting, lambda: batcher.streaming)
    rate_limit = RateLimit(settings.rate_limit, settings.proxy)
    backend = Backend(settings, models, batcher, keys, metrics, rate_limit, open_runs(runs))
    store = None if settings.no_files else FileStore(60 * settings.file_minutes)
    document, prefix = msgspec.json.encode(_document(backend)), settings.url_prefix
    routes = [
        *(_route(entry, backend) for entry in PATHS),
        *FileService(backend, store).routes,
        *(_fixed(path, document, JSON) for path in ("/openapi.json", "/spec")),
        Route("/suggest", _reject_suggestion, methods=["POST"]),
        *_pages(),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()
        if store is not None:
            store.close()

    app = Starlette(
        routes=[_to_slash(prefix), Mount(prefix, routes=routes)] if prefix else routes,
        lifespan=lifespan,
        middleware=_middleware(settings, metrics, [prefix + route.path for route in routes]),
        exception_handlers={Refusal: _refuse, TranseptError: _refuse, HTTPException: _refuse_http},
    )
    app.router.redirect_slashes = False
    app.state.models, app.state.batcher = models, batcher
    return app


def _route(entry: Entry, backend: Backend) -> Route:
    """A route that reads the body, checks the key and calls the handler."""
    takes, settings = entry.takes, backend.settings

    async def respond(request: Request) -> Response:
        messages = []
        if takes is not None:
            backend.admit(request)
            limits = settings.body_limit, settings.body_seconds
            messages = [await read_message(request, takes, *limits)]
        if entry.access == "key":
            backend.keys.check(request, *messages)
        set_deadline(request, settings.deadline)
        reply = await entry.handler(backend, request, *messages)
        return reply if isinstance(reply, Response) else answer(reply)

    return Route(entry.path, respond, methods=["GET" if takes is None else "POST"])


async def _reject_suggestion(request: Request) -> Response:
    return fault(403, "Suggestions are disabled on this server.")


def _to_slash(prefix: str) -> Route:
    """A route to the page: its relative addresses require a slash at the end."""

    async def respond(request: Request) -> Response:
        return RedirectResponse(f"{prefix}/")

    return Route(prefix, respond)


def _fixed(path: str, content: bytes, kind: str) -> Route:
    """A route with a constant response."""

    async def respond(request: Request) -> Response:
        return Response(content, media_type=kind)

    return Route(path, respond)


def _pages() -> list[Route]:
    """The web page, the API reference, and their static files."""
    apps = files("transept.apps")
    pages = {path: apps.joinpath(name) for path, name in PAGES.items()}
    for folder in STATIC:
        for file in apps.joinpath(folder).iterdir():
            if not file.name.endswith(".html"):
                pages[f"/static/{file.name}"] = file
    return [
        _fixed(path, file.read_bytes(), TYPES[Path(file.name).suffix])
        for path, file in pages.items()
    ]


def _middleware(settings: ServerSettings, metrics: Metrics, paths: list[str]) -> list[Middleware]:
    envelope = Middleware(
        Envelope,
        metrics=metrics,
        paths=paths,
        origins=settings.origin,
        local_names_only=settings.local_names_only,
    )
    if not settings.origin:
        return [envelope]
    cross_origin = Middleware(
        CORSMiddleware,
        allow_origins=settings.origin,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type"],
    )
    return [envelope, cross_origin]


# Coroutines, because Starlette runs plain functions in a separate thread.
async def _refuse(request: Request, error: Any) -> Response:
    if isinstance(error, Refusal):
        return fault(error.status, str(error), error.headers)
    if isinstance(error, OverloadedError):
        return fault(429, f"Slowdown: {error}", {"Retry-After": str(error.seconds)})
    if isinstance(error, StoppingError):
        return fault(503, str(error), {"Retry-After": "10"})
    if isinstance(error, MissingPairError):
        return fault(400, error.message(lambda name: f"--{name}"))
    return fault(400, f"Invalid request: {error}")


async def _refuse_http(request: Request, error: Any) -> Response:
    return fault(error.status_code, error.detail, error.headers)


# --- the OpenAPI document --------------------------------------------------------------------

REFERENCE = "#/components/schemas/{name}"
EVENTS_DESCRIPTION = (
    "Events: `part` with `text`, the next part of the translation, and `tail`, the current "
    "continuation, which may change; at the end `done` with the complete `text` and, if the "
    "translation lacks required terms, `missingTerms`; or `error`."
)
"""The events are described as text because a schema describes one message, not a stream."""


def _document(backend: Backend) -> dict[str, Any]:
    """The OpenAPI 3.1 document, without paths that require a parser or a run if there is none."""
    absent = {h.parse: not backend.models.parser, h.run_metrics: not backend.runs}
    entries = [one for one in PATHS if not absent.get(one.handler)]
    messages = [one.takes for one in entries if one.takes is not None]
    answers = [one.gives for one in entries if one.content_type == JSON]
    types = [ErrorAnswer, *messages, *answers]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    for message in messages:
        _complete(components[message.__name__]["properties"], backend)
    of_type = dict(zip(map(str, types), schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "transept",
            "version": __version__,
            "description": "A private translation server. `/translate`, `/detect`, `/languages`, "
            "`/health` and `/frontend/settings` are compatible with LibreTranslate. Bodies may be "
            "sent as forms.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": backend.settings.url_prefix or "/"}],
        "paths": {
            entry.path: {
                "get" if entry.takes is None else "post": _operation(
                    entry, of_type, needs_key=entry.access == "key" and backend.keys.required
                )
            }
            for entry in entries
        }
        | ({} if backend.settings.no_files else file_paths(backend.keys.required)),
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _complete(fields: dict[str, Any], backend: Backend) -> None:
    """Add schema details that the types do not contain: languages and search options."""
    meanings = _meanings(SearchConfig)
    for name, field in fields.items():
        if name in ("source", "target"):
            served = dict.fromkeys(getattr(model, name) for model in backend.models)
            others: list[str | None] = ["auto"] if name == "source" else []
            field["enum"] = [*served, *([None] if "anyOf" in field else others)]
        elif name in meanings:
            field["description"] = meanings[name]
            if name in ("beam_size", "n_best"):
                field["anyOf"][0] |= {"minimum": 1, "maximum": backend.settings.beam_limit}


def _meanings(config: type) -> dict[str, str]:
    """The docstrings of a dataclass's fields, read from its source."""
    found: dict[str, str] = {}
    for kind in config.__mro__[:-1]:
        (definition,) = ast.parse(inspect.getsource(kind)).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                described = ast.literal_eval(text.value)
                found.setdefault(ast.unparse(field.target), " ".join(described.split()))
    return found


def _operation(entry: Entry, of_type: dict[str, Any], *, needs_key: bool) -> dict[str, Any]:
    error = {JSON: {"schema": of_type[str(ErrorAnswer)]}}
    operation: dict[str, Any] = {
        "summary": (entry.handler.__doc__ or "").strip(),
        "operationId": entry.handler.__name__,
        "responses": {
            "200": _result(entry, of_type),
            "default": {"description": "An error.", "content": error},
        },
    }
    if entry.path in PARAMETERS:
        operation["parameters"] = PARAMETERS[entry.path]
    if needs_key:
        operation["security"] = [{"key": []}]
    if entry.takes is not None:
        schema = {"schema": of_type[str(entry.takes)]}
        operation["requestBody"] = {"required": True, "content": {JSON: schema}}
    return operation


def _result(entry: Entry, of_type: dict[str, Any]) -> dict[str, Any]:
    if entry.gives is h.EventResponse:
        return {"description": EVENTS_DESCRIPTION, "content": {entry.content_type: {}}}
    schema = of_type.get(str(entry.gives), {"type": "string"})
    return {"description": "The result.", "content": {entry.content_type: {"schema": schema}}}
