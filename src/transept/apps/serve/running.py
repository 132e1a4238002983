"""The process of a server: its socket, its signals, and how it stops."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from transept.apps.serve.settings import ServerSettings
from transept.errors import Argument, ServingError

log = logging.getLogger("transept.apps.serve")

CONNECTIONS = 2_000
"""The most open connections. With more, a request is answered by 503."""
HEADER_BYTES = 16_384
"""The most bytes of a request's header."""
READING_SECONDS = 1.0
"""Seconds that clients have to read their last answer, before the server ends their connections."""
_CURES = {
    errno.EADDRINUSE: ("try another ", Argument("port")),
    errno.EACCES: ("try a ", Argument("port"), " above 1023"),
}


def run(
    app: Starlette,
    listening: socket.socket,
    settings: ServerSettings,
    on_start: Callable[[str], None],
    hangup: threading.Event,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the accepted requests. SIGHUP reloads the models.

    Args:
        app: The application, from `create_app`.
        listening: The socket, from `listen`.
        settings: How long to wait for clients, and at the end for requests.
        on_start: Called with the server's address when it is ready for requests.
        hangup: Set if SIGHUP came while the models were loaded: then they are loaded again.
    """
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    config = configured(app, settings)
    server = _Server(config, app, lambda: on_start(address), hangup, settings.grace)
    asyncio.run(server.serve(sockets=[listening]))
    if server.abandoned:
        n = "1 request was" if server.abandoned == 1 else f"{server.abandoned} requests were"
        raise ServingError(f"{n} given up, not done ", *server.reason)


def configured(app: Starlette, settings: ServerSettings) -> uvicorn.Config:
    """The configuration of uvicorn: no log of its own, and limits on headers and connections."""
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
    """A uvicorn server with transept's signals, which leaves the exit code to its caller."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: Starlette,
        on_start: Callable[[], None],
        hangup: threading.Event,
        grace: float,
    ) -> None:
        super().__init__(config)
        self._app, self._on_start, self._hangup, self._grace = app, on_start, hangup, grace
        self._reloading: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self.abandoned, self.reason = 0, tuple[str | Argument, ...]()
        """How many requests were not done when the time to stop was over, and when that was."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        why = f"{self._grace:g} s after the signal to stop; ", Argument("grace"), " allows more"
        due = asyncio.get_running_loop().call_later(self._grace, self._give_up, *why)
        await super().shutdown(sockets)
        due.cancel()

    def _give_up(self, *reason: str | Argument) -> None:
        """Answer all requests that are not done with an error, and soon end their connections."""
        if not self.reason:
            self.abandoned, self.reason = len(self.server_state.tasks), reason
            self._app.state.batcher.fail_all()
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        """End the requests whose clients still send, then those whose clients do not read."""
        await asyncio.sleep(READING_SECONDS)
        for task in [*self.server_state.tasks]:
            task.cancel()
        await asyncio.sleep(READING_SECONDS)
        for connection in [*self.server_state.connections]:
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals. Uvicorn's own method would raise them again, which sets the exit code."""
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
        self._hangup.set()
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        # A signal that came during a reload may mean newer files, so reload once more.
        while self._hangup.is_set():
            self._hangup.clear()
            await asyncio.to_thread(self._app.state.models.reload)


def listen(host: str, port: int) -> socket.socket:
    """A socket on an address of this machine. Clients are refused until a server uses it."""
    try:
        *kind, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as on_failure:
            # `kind` includes the protocol. Only if a socket says that it is TCP does asyncio send
            # without delay; otherwise the second part of an answer waits 40 ms for the client.
            listening = on_failure.enter_context(socket.socket(*kind))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            on_failure.pop_all()
    except OSError as error:
        usual = Argument("host"), " must be an address of this machine"
        raise ServingError(
            f"{host}, port {port}: cannot listen there ({error.strerror}); ",
            *_CURES.get(error.errno or 0, usual),
        ) from error
    return listening


def _protocol(seconds: float) -> type[H11Protocol]:
    """The HTTP protocol with a time limit for a header, in seconds."""

    class Protocol(H11Protocol):
        _due: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            # The access log would show paths, and a client can write any text into a path.
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
