"""`transept serve`: a translation server on this machine."""

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from transept.apps.serve.settings import (
    Limits,
    Listening,
    Loading,
    Pace,
    Searching,
    ServerSettings,
)
from transept.errors import ConfigError, ServingError
from transept.runtime.interrupt import import_torch

if TYPE_CHECKING:
    from transept.apps.serve.models import ServedModels

BUNDLED, HERE, PAPERS, USUAL, PATIENT = Loading(), Listening(), Searching(), Limits(), Pace()
USUAL_PIVOT = "en"
"""The pivot of the bundled models."""
LOADING = Parameter(name="*", negative="", group=Group("Model", sort_key=1))
LISTENING = Parameter(name="*", negative="", group=Group("Address and access", sort_key=2))
SEARCH = Parameter(name="*", group=Group("Search", sort_key=3))
LIMITS = Parameter(name="*", group=Group("Limits", sort_key=4))
PACE = Parameter(name="*", group=Group("Pace", sort_key=5))


def serve(
    *,
    loading: Annotated[Loading, LOADING] = BUNDLED,
    listening: Annotated[Listening, LISTENING] = HERE,
    searching: Annotated[Searching, SEARCH] = PAPERS,
    limits: Annotated[Limits, LIMITS] = USUAL,
    pace: Annotated[Pace, PACE] = PATIENT,
) -> None:
    """Serve translations over HTTP, with the API of LibreTranslate.

    A web page at the server's address translates text and documents the API. By default the server
    is reachable only from this machine; any other --host requires --key-file or --no-key. Texts are
    never logged. SIGTERM or Ctrl-C stops the server after it has answered all accepted requests.
    SIGHUP reloads the models. If a new model is damaged or incomplete, the old one is kept.

    Args:
        loading: The models to serve.
        listening: The address, and access to the server.
        searching: The default search options.
        limits: Limits on requests and on the queue.
        pace: Batch sizes and timeouts.
    """
    settings = ServerSettings.of(listening, searching, limits, pace)
    languages = loading.source_language, loading.target_language
    if len(loading.model) > 1 and any(languages):
        raise ConfigError(
            "--source-language and --target-language apply to one model; with several, give the "
            "languages of each: --model en-de=DIRECTORY"
        )
    # Without a handler, SIGHUP would kill the process while it loads its models.
    hangup = threading.Event()
    signal.signal(signal.SIGHUP, lambda *_: hangup.set())
    import_torch()
    try:
        from transept.apps.serve.app import create_app
        from transept.apps.serve.models import ServedModels, open_models
        from transept.apps.serve.running import listen, run
    except ModuleNotFoundError as error:
        raise ServingError(
            f"{error.name} is not installed: the server requires `pip install 'transept[serve]'`"
        ) from error
    from transept.shelf import shipped_models

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    names: list[str | None] = [*loading.model] or [*shipped_models()] or [None]
    with listen(settings.host, settings.port) as socket:
        served = open_models(names, *languages, loading.device)
        pivot = loading.pivot
        if not loading.model and ServedModels(served).are_joined_by(USUAL_PIVOT):
            pivot = pivot or USUAL_PIVOT
        app = create_app(settings, served, pivot, loading.run)
        models = app.state.models
        run(app, socket, settings, lambda address: _greet(address, models, settings), hangup)


def _greet(address: str, models: "ServedModels", settings: ServerSettings) -> None:
    from transept.apps.serve.models import describe
    from transept.text.languages import name_of

    described = [*map(describe, models.by_model()), *(["trees"] if models.parser else [])]
    lines = [f"Serving at {address}", *(f"  {one}" for one in described)]
    if models.pivot:
        lines.append(f"Other pairs are translated through {name_of(models.pivot)}.")
    if settings.key_file is not None:
        lines.append(f"Clients need a key from {settings.key_file}.")
    elif settings.is_loopback:
        lines.append("The server is reachable only from this machine.")
    else:
        lines.append("No key is required: every machine that can reach the server can use it.")
    lines.append("Press Ctrl-C to stop.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
