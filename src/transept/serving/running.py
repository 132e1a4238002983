"""The process of a server: its socket, its signals, its end."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from transept.errors import ServingError
from transept.serving.hangups import Hangups
from transept.serving.settings import ServerSettings

log = logging.getLogger("transept.serving")

CONNECTIONS = 2_000
"""Open at a time, at most; beyond that, a request is answered by 503."""
HEADER_BYTES = 16_384
LISTENING = 1.0
"""Seconds for reading that a server stops."""
_CURES = {
    errno.EADDRINUSE: "try another --port",
    errno.EACCES: "try a --port above 1023",
}


def run(
    app: Starlette,
    listening: socket.socket,
    settings: ServerSettings,
    on_start: Callable[[str], None],
    hangups: Hangups,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish what was begun; SIGHUP reloads the models.

    Args:
        app: What `create_app` made.
        listening: What `listen` made.
        settings: How patiently.
        on_start: Called with the server's address once it answers.
        hangups: What came while the models were loaded: then they are loaded once more.
    """
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    config = configured(app, settings)
    server = _Server(config, app, lambda: on_start(address), hangups, settings.grace)
    asyncio.run(server.serve(sockets=[listening]))
    if server.abandoned:
        n = "1 request was" if server.abandoned == 1 else f"{server.abandoned} requests were"
        raise ServingError(f"{n} given up, not done {server.reason}")


def configured(app: Starlette, settings: ServerSettings) -> uvicorn.Config:
    """How the web server is to be: no log of its own, limits on headers and connections."""
    return uvicorn.Config(
        app,
        http=_protocol(settings.body_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )


class _Server(uvicorn.Server):
    """Stops when told to, and leaves the exit code to its caller."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: Starlette,
        on_start: Callable[[], None],
        hangups: Hangups,
        grace: float,
    ) -> None:
        super().__init__(config)
        self._app, self._on_start, self._hangups, self._grace = app, on_start, hangups, grace
        self._reloading: asyncio.Task[None] | None = None
        self._insisting: asyncio.Task[None] | None = None
        self.abandoned, self.reason = 0, ""
        """Requests that were under way when patience ended, and when that was."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        why = f"{self._grace:g} s after the signal to stop; --grace gives them longer"
        due = asyncio.get_running_loop().call_later(self._grace, self._give_up, why)
        await super().shutdown(sockets)
        due.cancel()

    def _give_up(self, reason: str) -> None:
        """Tell all that wait that it is over: they are answered, as far as they listen."""
        if not self.reason:
            self.abandoned, self.reason = len(self.server_state.tasks), reason
            self._app.state.batcher.give_up()
            self._insisting = asyncio.create_task(self._insist())

    async def _insist(self) -> None:
        """End what is left: whoever still sends, and whoever does not read the answer."""
        await asyncio.sleep(LISTENING)
        for task in [*self.server_state.tasks]:
            task.cancel()
        await asyncio.sleep(LISTENING)
        for connection in [*self.server_state.connections]:
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn's own would raise the signal once more, and so end in its exit code."""
        loop = asyncio.get_running_loop()
        handlers = {
            signal.SIGTERM: self._stop, signal.SIGINT: self._stop, signal.SIGHUP: self._hang_up
        }  # fmt: skip
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        self._reloading = asyncio.create_task(self._reload())
        yield
        for number in handlers:
            loop.remove_signal_handler(number)

    def _stop(self) -> None:
        if self.should_exit:
            self._give_up("at the second signal to stop")
        self.should_exit = True

    def _hang_up(self) -> None:
        self._hangups.came = True
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        # What was changed while the models were being loaded is loaded after that.
        while self._hangups.came:
            self._hangups.came = False
            await asyncio.to_thread(self._app.state.models.reload)


def listen(host: str, port: int) -> socket.socket:
    """Take an address of this machine; clients are refused until something serves there."""
    try:
        *kind, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as on_failure:
            # All of the kind, the protocol too: asyncio sends without delay where a socket says
            # that it is TCP, and else the second part of an answer waits 40 ms for the client.
            listening = on_failure.enter_context(socket.socket(*kind))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            on_failure.pop_all()
    except OSError as error:
        cure = _CURES.get(error.errno or 0, "--host must be an address of this machine")
        raise ServingError(
            f"{host}, port {port}: cannot listen there ({error.strerror}); {cure}"
        ) from error
    return listening


def _protocol(seconds: float) -> type[H11Protocol]:
    """HTTP that does not wait for ever: a header must be there within so many seconds."""

    class Protocol(H11Protocol):
        _due: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            # Whoever has logging set up would see paths, and a path is free text.
            self.access_log = False
            super().connection_made(transport)
            self._watch_header()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_header()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _watch_header(self) -> None:
            if self.conn.their_state is not h11.IDLE:
                self._forget()
            elif self._due is None:
                self._due = self.loop.call_later(seconds, self.transport.close)

        def _forget(self) -> None:
            if self._due is not None:
                self._due.cancel()
                self._due = None

    return Protocol
