"""The HTTP protocol of a connection: uvicorn's, with limits for headers and slow clients."""

import asyncio
from http import HTTPStatus
from typing import Any, ClassVar, Literal

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from transept.apps.serve.messages import ErrorAnswer

HEADER_BYTES = 16_384
"""The maximum size of a request header in bytes."""
TOO_LARGE = 431


class _Connection(h11.Connection):
    """A connection that rejects a large header also if it arrives at once.

    h11 itself limits only a header that is incomplete.
    """

    status = 400
    """The status of the response to a malformed request."""

    def next_event(self) -> Any:
        try:
            return self._checked(super().next_event())
        except h11.RemoteProtocolError as error:
            self.status = TOO_LARGE if error.error_status_hint == TOO_LARGE else 400
            raise

    def _checked(self, event: Any) -> Any:
        if not isinstance(event, h11.Request):
            return event
        lines = [(event.method, event.target), *event.headers.raw_items()]
        if sum(len(name) + len(value) + len(": \r\n") for name, value in lines) > HEADER_BYTES:
            what = f"a header has more than {HEADER_BYTES:,} bytes"
            raise h11.RemoteProtocolError(what, error_status_hint=TOO_LARGE)
        names = {name for name, _ in event.headers}
        if {b"content-length", b"transfer-encoding"} <= names:
            # RFC 9112, section 6.1: a proxy may have seen another end of the message.
            headers = [*event.headers.raw_items(), (b"Connection", b"close")]
            return h11.Request(
                method=event.method,
                target=event.target,
                headers=headers,
                http_version=event.http_version,
            )
        return event


class LimitedProtocol(H11Protocol):
    """A connection that is closed if a header, or a body that is not read, takes too long."""

    seconds: ClassVar[float]
    """The timeout."""
    conn: _Connection
    _due: asyncio.TimerHandle | None = None
    _awaited: Literal["header", "rest of a body"] | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first header."""
        # The access log would contain paths, which can contain arbitrary text.
        self.access_log = False
        self.conn = _Connection(h11.SERVER, HEADER_BYTES)
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Parse data."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next header, or for the rest of a body."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._cancel_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Reject a malformed request, or one with a large header, in JSON."""
        headers = [("Content-Type", "application/json"), ("Connection", "close")]
        status = HTTPStatus(self.conn.status)
        what = f"{msg} A header has more than {HEADER_BYTES:,} bytes."
        body = msgspec.json.encode(ErrorAnswer(what if status == TOO_LARGE else msg))
        for event in (
            h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Uvicorn would advise to install a package."""

    def _watch(self) -> None:
        """Close the connection if a header, or a body after the response, takes too long."""
        awaited = self._now_awaited()
        if awaited != self._awaited:
            self._cancel_timer()
            self._awaited = awaited
            if awaited is not None:
                self._due = self.loop.call_later(self.seconds, self.transport.close)

    def _now_awaited(self) -> Literal["header", "rest of a body"] | None:
        if self.conn.their_state is h11.IDLE:
            return "header"
        answered = self.conn.our_state is h11.DONE
        return "rest of a body" if answered and self.conn.their_state is h11.SEND_BODY else None

    def _cancel_timer(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def protocol(seconds: float) -> type[H11Protocol]:
    """The protocol with a timeout in seconds."""
    return type("TimedProtocol", (LimitedProtocol,), {"seconds": seconds})
