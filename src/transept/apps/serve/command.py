"""`transept serve`: a translation server on this machine."""

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from transept.apps.serve.settings import Limits, Listening, Pace, Searching, ServerSettings
from transept.errors import ConfigError, ServingError
from transept.runtime.interrupt import import_torch

if TYPE_CHECKING:
    from transept.apps.serve.models import AnyServed

HERE, PAPERS, USUAL, PATIENT = Listening(), Searching(), Limits(), Pace()
MODEL = Group("Model", sort_key=1)
LISTENING = Parameter(name="*", negative="", group=Group("Address and access", sort_key=2))
SEARCH = Parameter(name="*", group=Group("Search", sort_key=3))
LIMITS = Parameter(name="*", group=Group("Limits", sort_key=4))
PACE = Parameter(name="*", group=Group("Pace", sort_key=5))


def serve(
    *,
    model: Annotated[tuple[str, ...], Parameter(negative="", show_default=False, group=MODEL)] = (),
    source_language: Annotated[str | None, Parameter(group=MODEL)] = None,
    target_language: Annotated[str | None, Parameter(group=MODEL)] = None,
    device: Annotated[str, Parameter(group=MODEL)] = "auto",
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
        model: The directory of a model, a run, a demo or a recipe, or the name of a bundled model.
            Default: all bundled models. May be repeated, one model for each language pair:
            --model en-de=runs/base --model de-en=runs/back. One of them may be a parser.
        source_language: The source language of the model, such as en, if neither the model's name
            nor --model specifies it.
        target_language: The target language of the model.
        device: The device: cpu, cuda, cuda:1, or auto, which uses a GPU if there is one.
        listening: The address, and access to the server.
        searching: The default search options.
        limits: Limits on requests and on the queue.
        pace: Batch sizes and timeouts.
    """
    settings = ServerSettings.of(listening, searching, limits, pace)
    if len(model) > 1 and (source_language or target_language):
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
        from transept.apps.serve.running import listen, run
    except ModuleNotFoundError as error:
        raise ServingError(
            f"{error.name} is not installed: the server requires `pip install 'transept[serve]'`"
        ) from error
    from transept.apps.serve.models import open_model
    from transept.shelf import shipped_models

    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    names: list[str | None] = [*model] or [*shipped_models()] or [None]
    with listen(settings.host, settings.port) as socket:
        served = [open_model(name, source_language, target_language, device) for name in names]
        app = create_app(settings, served)
        run(app, socket, settings, lambda address: _greet(address, served, settings), hangup)


def _greet(address: str, served: "list[AnyServed]", settings: ServerSettings) -> None:
    from transept.apps.serve.models import describe

    lines = [f"Serving {', '.join(map(describe, served))} at {address}"]
    if settings.key_file is not None:
        lines.append(f"Clients need a key from {settings.key_file}.")
    elif settings.is_loopback:
        lines.append("The server is reachable only from this machine.")
    else:
        lines.append("No key is required: every machine that can reach the server can use it.")
    lines.append("Press Ctrl-C to stop.")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
