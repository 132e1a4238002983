"""A relay between the browser and the server that can stop in the middle of a stream."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

FIRST_PART = b"event: part"
END_OF_EVENT = b"\n\n"
_Cut = Callable[[bytes], Iterable[bytes]]


class Valve:
    """Relays connections. A closed valve passes the first event of a stream and holds the rest."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._alive = True
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/"

    def hold(self) -> None:
        """Hold streams after their first event."""
        self._open.clear()

    def release(self) -> None:
        """Pass everything, including what was held."""
        self._open.set()

    def kill(self) -> None:
        """Break all connections and refuse new ones, as a killed server would."""
        self._alive = False
        for one in [*self._sockets]:
            _close(one)

    def revive(self) -> None:
        """Accept connections again."""
        self._alive = True

    def close(self) -> None:
        """End."""
        self.kill()
        self.release()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                browser, _ = self._listening.accept()
                if not self._alive:
                    _close(browser)
                    continue
                server = socket.create_connection(self._target)
                self._sockets |= {browser, server}
                for pump in (self._forward, self._back):
                    threading.Thread(target=pump, args=(browser, server), daemon=True).start()

    def _forward(self, browser: socket.socket, server: socket.socket) -> None:
        self._pump(browser, server, lambda data: [data])

    def _back(self, browser: socket.socket, server: socket.socket) -> None:
        self._pump(server, browser, self._cut)

    def _pump(self, source: socket.socket, sink: socket.socket, cut: _Cut) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                for part in cut(data):
                    sink.sendall(part)
        for one in (source, sink):
            _close(one)
            self._sockets.discard(one)

    def _cut(self, data: bytes) -> Iterator[bytes]:
        """The part up to the end of the first event, and the rest once the valve is open."""
        start = data.find(FIRST_PART)
        if start >= 0 and not self._open.is_set():
            end = data.find(END_OF_EVENT, start) + len(END_OF_EVENT)
            yield data[:end]
            data = data[end:]
            self._open.wait()
        yield data


@contextmanager
def valve_before(port: int) -> Iterator[Valve]:
    """A valve in front of the server at this port."""
    valve = Valve(port)
    try:
        yield valve
    finally:
        valve.close()


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
