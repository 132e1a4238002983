"""The process of a server: its socket, its signals, and how it stops."""

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn
from starlette.applications import Starlette

from transept.apps.serve.protocol import protocol
from transept.apps.serve.settings import ServerSettings
from transept.errors import Argument, ServingError

log = logging.getLogger("transept.apps.serve")

CONNECTIONS = 2_000
"""The maximum number of open connections. Beyond that, requests get status 503."""
READING_SECONDS = 1.0
"""Seconds for clients to read their last response before the server closes the connection."""
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
    """Serve until SIGTERM or SIGINT, then finish accepted requests. SIGHUP reloads the models.

    Args:
        app: The application, from `create_app`.
        listening: The socket, from `listen`.
        settings: Timeouts for clients and for requests at shutdown.
        on_start: Called with the server's address when it is ready for requests.
        hangup: Set if SIGHUP arrived while the models were being loaded. They are reloaded then.
    """
    host, port = listening.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    config = configured(app, settings)
    server = _Server(config, app, lambda: on_start(address), hangup, settings.grace)
    asyncio.run(server.serve(sockets=[listening]))
    if server.abandoned:
        n = "1 request was" if server.abandoned == 1 else f"{server.abandoned} requests were"
        raise ServingError(f"{n} aborted ", *server.reason)


def configured(app: Starlette, settings: ServerSettings) -> uvicorn.Config:
    """The configuration of uvicorn, without its log and with limits."""
    return uvicorn.Config(
        app,
        http=protocol(settings.body_seconds),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
    )


class _Server(uvicorn.Server):
    """A uvicorn server with custom signal handling. The caller sets the exit code."""

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
        """The number of requests that were aborted at shutdown, and the reason."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        why = f"{self._grace:g} s after the signal to stop; ", Argument("grace"), " allows more"
        due = asyncio.get_running_loop().call_later(self._grace, self._abort_all, *why)
        await super().shutdown(sockets)
        due.cancel()

    def _abort_all(self, *reason: str | Argument) -> None:
        """Fail all unfinished requests, and close their connections soon after."""
        if not self.reason:
            self.abandoned, self.reason = len(self.server_state.tasks), reason
            self._app.state.batcher.fail_all()
            self._ending = asyncio.create_task(self._end())

    async def _end(self) -> None:
        """Cancel requests whose clients still send, then close connections that are not read."""
        await asyncio.sleep(READING_SECONDS)
        for task in [*self.server_state.tasks]:
            task.cancel()
        await asyncio.sleep(READING_SECONDS)
        for connection in [*self.server_state.connections]:
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals. Uvicorn's method would raise them again, which sets the exit code."""
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
            self._abort_all("at the second signal to stop")
        self.should_exit = True

    def _hang_up(self) -> None:
        self._hangup.set()
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        # A signal during a reload may announce newer files, so reload again.
        while self._hangup.is_set():
            self._hangup.clear()
            await asyncio.to_thread(self._app.state.models.reload)


def listen(host: str, port: int) -> socket.socket:
    """Bind a socket. Connections are refused until a server listens on it."""
    try:
        *kind, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as on_failure:
            # `kind` includes the protocol. asyncio sets TCP_NODELAY only on sockets with protocol
            # TCP. Without it, the second part of a response is delayed by 40 ms.
            listening = on_failure.enter_context(socket.socket(*kind))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            on_failure.pop_all()
    except OSError as error:
        usual = Argument("host"), " must be an address of this machine"
        raise ServingError(
            f"{host}, port {port}: cannot listen ({error.strerror}); ",
            *_CURES.get(error.errno or 0, usual),
        ) from error
    return listening
