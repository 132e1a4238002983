"""Answers in JSON, and errors in the shape that clients know."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from transept.serving.messages import Fault


def answer(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A message as JSON."""
    return Response(msgspec.json.encode(message), status, headers, "application/json")


class Heard(Response):
    """An answer to whoever may still be sending.

    What they send is thrown away: if the connection were closed before, they would be told that it
    broke, and never read the answer.
    """

    def __init__(self, said: Response, seconds: float) -> None:
        super().__init__(said.body, said.status_code)
        self.raw_headers, self._seconds = said.raw_headers, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it at once, and close the connection when nothing comes any more."""
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b""})


def fault(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    """What went wrong, as `{"error": …}`."""
    return answer(Fault(error), status, headers)
