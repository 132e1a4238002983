"""Reading the body of a request, within a limit of bytes and a limit of time."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request

T = TypeVar("T", bound=msgspec.Struct)

FORM = "application/x-www-form-urlencoded"
# A client that is still sending would block the connection for the next request.
CLOSING = {"Connection": "close"}


class Refusal(Exception):  # noqa: N818  (it is an answer, not a fault of the server)
    """Ends the handling of a request: the answer is an error with this status."""

    def __init__(self, status: int, error: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.headers = status, error, headers or {}


class TooLarge(Refusal):
    """A body that is too large, and so was not read to its end.

    `seconds` is for how long the client may go on sending it.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        what = f"Invalid request: the body has more than {limit:,} bytes; send less at a time"
        super().__init__(413, what, CLOSING)
        self.seconds = seconds


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """The body. If it has more than `limit` bytes, it is dropped and the request is refused."""
    too_large = TooLarge(limit, seconds)
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > limit:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
    except TimeoutError:
        raise Refusal(408, f"the body did not come within {seconds:g} s", CLOSING) from None
    except ClientDisconnect:
        raise Refusal(400, "the client has gone", CLOSING) from None
    return bytes(body)


def parse(body: bytes, content_type: str, schema: type[T]) -> T:
    """A message from a body in JSON, or in one of the two encodings of a form."""
    kind, _, rest = content_type.partition(";")
    kind = kind.strip().lower()
    try:
        if kind == FORM:
            text = body.decode()
            fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2_000)
            return _from_fields(fields, schema)
        if kind == "multipart/form-data":
            return _from_fields(list(_multipart_fields(body, rest)), schema)
        if kind and kind != "application/json":
            raise Refusal(415, f"{kind} is not supported; send application/json")
        if not body.strip():
            needed = ", ".join(f.name for f in msgspec.structs.fields(schema) if f.required)
            raise ValueError(f"the body is empty; send a JSON object with {needed}")
        return msgspec.json.decode(body, type=schema)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refusal(400, f"Invalid request: {_explained(error, schema)}") from None


def _from_fields(fields: list[tuple[str, str]], schema: type[T]) -> T:
    """A message from the fields of a form; a `q` or `translation` that comes twice is a list."""
    values: dict[str, Any] = {}
    for name, value in fields:
        if name in values and name in ("q", "translation"):
            before = values[name]
            values[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            values[name] = value
    return msgspec.convert(values, schema, strict=False)


def _multipart_fields(body: bytes, parameters: str) -> Iterator[tuple[str, str]]:
    """The fields of a form that a browser sends by `FormData`; files in it are ignored."""
    boundary = re.search(r'boundary="?([^";,\s]{1,70})"?', parameters)
    if boundary is None:
        raise ValueError("the form has no boundary")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())
    for part in parts[1:-1]:
        header, blank, value = part.partition(b"\r\n\r\n")
        name = re.search(rb'(?<![a-z])name="([^"]*)"', header)
        if not blank or name is None:
            raise ValueError("the form is broken")
        if b"filename=" not in header:
            yield name[1].decode(), value.decode()


def _explained(error: Exception, schema: type[msgspec.Struct]) -> str:
    """What is wrong, in LibreTranslate's words where it has some; never the text that was sent."""
    if isinstance(error, UnicodeError):
        return "the body is not UTF-8"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply"
    missing = re.fullmatch(r"Object missing required field `(\w+)`", str(error))
    if missing:
        return f"missing {missing[1]} parameter"
    chosen = re.fullmatch(r"Invalid enum value .* - at `\$\.(\w+).*`", str(error), re.DOTALL)
    if chosen:
        return f"{error}; choose from {', '.join(_choices(get_type_hints(schema)[chosen[1]]))}"
    if isinstance(error, msgspec.ValidationError) or not isinstance(error, msgspec.DecodeError):
        return str(error)
    return f"the body is not JSON: {error}"


def _choices(hint: Any) -> list[str]:
    """The values that a field, or each item of a list, may have."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for inner in get_args(hint) for choice in _choices(inner)]
