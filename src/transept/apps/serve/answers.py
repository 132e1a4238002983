"""Answers in JSON, and errors in the form of LibreTranslate."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from transept.apps.serve.messages import ErrorAnswer

FAILED = "the server failed; its log says where"
"""What a client is told about an unexpected exception, whose own message may quote a text."""


def answer(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The answer with a message as JSON."""
    return Response(msgspec.json.encode(message), status, headers, "application/json")


class DrainingResponse(Response):
    """An answer to a client that may still be sending its request.

    The rest of the request is read and thrown away. If the connection were closed before, the
    client would only see that it broke, and never read the answer.
    """

    def __init__(self, response: Response, seconds: float) -> None:
        """Send this response, and read what still comes for so many seconds at most."""
        super().__init__(response.body, response.status_code)
        self.raw_headers, self._seconds = response.raw_headers, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer at once, and end it when the client sends no more."""
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b""})


def fault(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    """The answer `{"error": …}`."""
    return answer(ErrorAnswer(error), status, headers)
