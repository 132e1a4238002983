"""The server as an ASGI application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from transept.apps.serve import openapi
from transept.apps.serve.answers import DrainingResponse, fault
from transept.apps.serve.backend import Backend
from transept.apps.serve.batching import Batcher, Capacity
from transept.apps.serve.bodies import Refusal, TooLarge
from transept.apps.serve.messages import ParseAnswer
from transept.apps.serve.metrics import Metrics
from transept.apps.serve.models import AnyServed, ServedModels
from transept.apps.serve.protection import Envelope, Keys
from transept.apps.serve.routes import Entry, endpoint, entries
from transept.apps.serve.settings import ServerSettings

PAGES = {
    "/": ("index.html", "text/html"),
    "/docs": ("index.html", "text/html"),
    "/static/style.css": ("style.css", "text/css"),
    "/static/script.js": ("script.js", "text/javascript"),
    "/static/icon.svg": ("icon.svg", "image/svg+xml"),
}


def create_app(settings: ServerSettings, served: Sequence[AnyServed]) -> Starlette:
    """The application that serves these models.

    The process uses `app.state.models` to reload them, and `app.state.batcher` to end all requests.

    Args:
        settings: Who may use the server, and its limits.
        served: The models. A request that names no languages gets the first one that translates.
    """
    keys, metrics, models = Keys.read(settings.key_file), Metrics(), ServedModels(served)
    batcher = Batcher(_capacity(settings), metrics)
    metrics.watch(lambda: batcher.waiting, lambda: batcher.streaming)
    table = entries(Backend(settings, models, batcher), metrics, keys)
    routes = [
        *(
            Route(entry.path, endpoint(entry, settings, keys), methods=[entry.method])
            for entry in table
        ),
        _fixed("/openapi.json", _description(table, models, settings, keys), "application/json"),
        *(
            _fixed(path, files(__package__).joinpath("pages", name).read_bytes(), kind)
            for path, (name, kind) in PAGES.items()
        ),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        batcher.start()
        yield
        await batcher.stop()

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=_middleware(settings, metrics, [route.path for route in routes]),
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    app.state.models, app.state.batcher = models, batcher
    return app


def _description(
    table: Sequence[Entry], models: ServedModels, settings: ServerSettings, keys: Keys
) -> bytes:
    """The OpenAPI document. Without a parser, the path that parses is left out of it."""
    there = [entry for entry in table if models.parser or entry.gives is not ParseAnswer]
    described = openapi.document(
        there, models.languages, settings.beam_limit, key_required=keys.required
    )
    return msgspec.json.encode(described)


def _capacity(settings: ServerSettings) -> Capacity:
    return Capacity(
        batch=settings.batch_sentences,
        beam_size=settings.beam_size,
        queue=settings.queue_limit,
        streams=settings.stream_limit,
        gather_seconds=settings.gather_ms / 1000,
        batch_seconds=settings.batch_seconds,
    )


def _middleware(settings: ServerSettings, metrics: Metrics, paths: list[str]) -> list[Middleware]:
    envelope = Middleware(
        Envelope, metrics=metrics, paths=paths, local_names_only=settings.local_names_only
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


def _fixed(path: str, content: bytes, kind: str) -> Route:
    """A path that always gives the same answer."""

    async def respond(request: Request) -> Response:
        return Response(content, media_type=kind)

    return Route(path, respond)


# These are coroutines because Starlette runs a plain function in a thread of its own.
async def _refuse(request: Request, refusal: Refusal) -> Response:
    return fault(refusal.status, refusal.error, refusal.headers)


async def _refuse_unread(request: Request, refusal: TooLarge) -> Response:
    return DrainingResponse(await _refuse(request, refusal), refusal.seconds)


async def _refuse_http(request: Request, error: HTTPException) -> Response:
    return fault(error.status_code, error.detail, error.headers)


HANDLERS: dict[Any, Any] = {
    Refusal: _refuse,
    TooLarge: _refuse_unread,
    HTTPException: _refuse_http,
}
