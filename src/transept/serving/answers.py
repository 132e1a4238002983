"""Answers in JSON, and errors in the shape that clients know."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from transept.serving.messages import Fault


def answer(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A message as JSON."""
    return Response(msgspec.json.encode(message), status, headers, "application/json")


def fault(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    """What went wrong, as `{"error": …}`."""
    return answer(Fault(error), status, headers)
