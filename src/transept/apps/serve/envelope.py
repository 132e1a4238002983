"""HTTP handling around a message: bodies, keys, headers, errors, the log and the metrics.

The log and the metrics never contain a text or the address of a client.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transept.apps.serve.access import is_cross_site
from transept.apps.serve.batching import StoppingError
from transept.apps.serve.messages import ErrorAnswer
from transept.errors import ConfigError, Problem

log = logging.getLogger("transept.apps.serve")

FORM = "application/x-www-form-urlencoded"
# Otherwise a client that is still sending would block the connection for the next request.
CLOSING = {"Connection": "close"}
FAILED = "the server failed; its log says where"
"""The error for an unexpected exception. Its own message may quote a text."""
LEAST_KEY = 16
LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

T = TypeVar("T", bound=msgspec.Struct)


# --- answers ---------------------------------------------------------------------------------


class Refusal(Exception):  # noqa: N818  (a response, not a failure of the server)
    """Aborts a request with an error response of this status."""

    def __init__(self, status: int, error: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(error)
        self.status, self.headers = status, headers


def answer(message: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(msgspec.json.encode(message), status, headers, "application/json")


def fault(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response `{"error": …}`, as in LibreTranslate."""
    return answer(ErrorAnswer(error), status, headers)


# --- bodies ----------------------------------------------------------------------------------


async def read_message(request: Request, schema: type[T], limit: int, seconds: float) -> T:
    """Read the message in a request's body of at most `limit` bytes."""
    body = await read_body(request, limit, seconds)
    kind = request.headers.get("content-type", "")
    # Some clients of LibreTranslate send their fields in the query string.
    if not body and request.url.query:
        body, kind = request.url.query.encode(), FORM
    return _parse(body, kind, schema)


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """Read a body of at most `limit` bytes."""
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                size += len(chunk)
                # The rest of a body that is too large is read and discarded. If the connection
                # were closed earlier, the client would see a broken connection, not the error.
                if size <= limit:
                    body += chunk
    except TimeoutError:
        if size <= limit:
            raise Refusal(408, f"the body did not arrive within {seconds:g} s", CLOSING) from None
    except ClientDisconnect:
        raise Refusal(400, "the client disconnected", CLOSING) from None
    if size > limit:
        what = f"Invalid request: the body has more than {limit:,} bytes; send less at a time"
        raise Refusal(413, what, CLOSING)
    return bytes(body)


def _parse(body: bytes, content_type: str, schema: type[T]) -> T:
    """Parse a body in JSON or in one of the two form encodings."""
    kind, _, rest = content_type.partition(";")
    kind = kind.strip().lower()
    try:
        if kind == FORM:
            text = body.decode()
            fields = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=2_000)
            return _from_fields(fields, schema)
        if kind == "multipart/form-data":
            parts = multipart_parts(body, rest)
            given = [(part.name, part.value.decode()) for part in parts if part.file is None]
            return _from_fields(given, schema)
        if kind and kind != "application/json":
            raise Refusal(415, f"{kind} is not supported; send application/json")
        if not body.strip():
            needed = ", ".join(f.name for f in msgspec.structs.fields(schema) if f.required)
            raise ValueError(f"the body is empty; send a JSON object with {needed}")
        # The paths of LibreTranslate accept unknown fields, and numbers as strings.
        return msgspec.json.decode(
            body, type=schema, strict=schema.__struct_config__.forbid_unknown_fields
        )
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refusal(400, f"Invalid request: {_explained(error, schema)}") from None


def message_of(fields: list[tuple[str, str]], schema: type[T]) -> T:
    """The message in the fields of a form."""
    try:
        return _from_fields(fields, schema)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"Invalid request: {_explained(error, schema)}") from None


def _from_fields(fields: list[tuple[str, str]], schema: type[T]) -> T:
    """A message from form fields. A repeated `q` or `translation` becomes a list."""
    values: dict[str, Any] = {}
    for name, value in fields:
        if name in values and name in ("q", "translation"):
            before = values[name]
            values[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            values[name] = value
    return msgspec.convert(values, schema, strict=False)


class FormPart(NamedTuple):
    """A field of a multipart form."""

    name: str
    value: bytes
    file: str | None
    """The name of a file. None if it is not a file."""


def multipart_parts(body: bytes, parameters: str) -> Iterator[FormPart]:
    """The fields and files of a multipart form."""
    boundary = re.search(r'boundary="?([^";,\s]{1,70})"?', parameters)
    if boundary is None:
        raise ValueError("the form has no boundary")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode())
    for part in parts[1:-1]:
        header, blank, value = part.partition(b"\r\n\r\n")
        name = re.search(rb'(?<![a-z])name="([^"]*)"', header)
        if not blank or name is None:
            raise ValueError("the form is malformed")
        file = re.search(rb'filename="([^"]*)"', header)
        is_file = b"filename=" in header
        yield FormPart(
            name[1].decode(), value, file[1].decode() if file else "" if is_file else None
        )


def _explained(error: Exception, schema: type[msgspec.Struct]) -> str:
    """The error message, in LibreTranslate's wording if it has one. It never quotes the request."""
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


# --- keys ------------------------------------------------------------------------------------


class Keys:
    """The accepted API keys. Only their hashes are stored."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        self._digests = tuple(digests)

    @classmethod
    def read(cls, path: Path | None) -> "Keys":
        """Read a file with one key per line. Without a file, no key is required."""
        if path is None:
            return cls(())
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem("key_file", f"cannot be read ({error})")]) from error
        wanted = [
            (number, line.strip())
            for number, line in enumerate(lines, start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not wanted:
            raise ConfigError([Problem("key_file", "contains no key", str(path))])
        return cls(_digest_of_line(line, f"{path}, line {number}") for number, line in wanted)

    @property
    def required(self) -> bool:
        """Whether clients must send a key."""
        return bool(self._digests)

    def check(self, request: Request, message: object = None) -> None:
        """Reject a request without an accepted key in its header or in its message.

        The comparison takes constant time.
        """
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        in_header = value.strip() if scheme.lower() == "bearer" else None
        key = in_header or getattr(message, "api_key", None)
        if not self.accept(key):
            raise Refusal(403, "Invalid API key" if key else "An API key is required")

    def accept(self, key: str | None) -> bool:
        """Whether a key is accepted."""
        if not self.required:
            return True
        digest = _digest(key or "")
        matches = [hmac.compare_digest(digest, one) for one in self._digests]
        return any(matches)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", errors="surrogatepass")).digest()


def _digest_of_line(line: str, place: str) -> bytes:
    kind, colon, digest = line.partition(":")
    if colon and kind == "sha256":
        if re.fullmatch("[0-9a-fA-F]{64}", digest):
            return bytes.fromhex(digest)
        raise ConfigError([Problem("key_file", "must be sha256: and 64 hexadecimal digits", place)])
    if len(line) < LEAST_KEY:
        what = f"is shorter than {LEAST_KEY} characters: make one with `openssl rand -hex 16`"
        raise ConfigError([Problem("key_file", what, place)])
    return _digest(line)


# --- metrics and log -------------------------------------------------------------------------


class Metrics:
    """The metrics of one server, for Prometheus."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self._requests = Counter(
            "transept_requests", "Requests answered.", ["route", "status"], registry=own
        )
        self._seconds = Histogram(
            "transept_request_seconds",
            "Time from a request's header to the end of its answer.",
            ["route"],
            registry=own,
            buckets=(0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
        )
        self._batch = Histogram(
            "transept_batch_sentences",
            "Sentences decoded together.",
            registry=own,
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
        )
        self._decoding = Counter("transept_decoding_seconds", "Time spent in models.", registry=own)
        self._queue = Gauge("transept_queue_sentences", "Sentences in the queue.", registry=own)
        self._streams = Gauge("transept_streams", "Translations being streamed.", registry=own)

    def watch(self, waiting: Callable[[], float], streaming: Callable[[], float]) -> None:
        """Set the functions that return the queue length and the number of streams."""
        self._queue.set_function(waiting)
        self._streams.set_function(streaming)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request. The status is 0 if the client disconnected before the response."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def decoded(self, n_items: int, seconds: float) -> None:
        """Count a decoded batch. With 0 items, only add the decoding time of streams."""
        if n_items:
            self._batch.observe(n_items)
        self._decoding.inc(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class Envelope:
    """Middleware around every request.

    It checks the host name and the origin, assigns a request ID, adds response headers, turns an
    unexpected exception into an error response, logs the request, and counts it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        paths: Iterable[str],
        origins: Collection[str],
        local_names_only: bool,
    ) -> None:
        self._app, self._metrics, self._paths = app, metrics, frozenset(paths)
        self._origins, self._local_names_only = origins, local_names_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # A path can contain arbitrary text, so only known paths are logged.
        route = scope["path"] if scope["path"] in self._paths else "other"
        number, start, status = secrets.token_hex(8), time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers["X-Request-ID"] = number
                if "/static/" not in route:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        try:
            refused = self._refused(scope["method"], Headers(scope=scope))
            await (refused or self._app)(scope, receive, send_on)
        except asyncio.CancelledError:
            # A request is cancelled only when the server stops and the grace period is over.
            if not status:
                await fault(503, str(StoppingError()))(scope, receive, send_on)
        except Exception as error:
            log.error("%s %s failed: %s", number, route, _where(error))
            if not status:
                await fault(500, FAILED)(scope, receive, send_on)
        finally:
            seconds = time.perf_counter() - start
            self._metrics.answered(route, status, seconds)
            log.info("%s %s %s %d %.0f ms", number, scope["method"], route, status, 1000 * seconds)

    def _refused(self, method: str, headers: Headers) -> Response | None:
        """The response to a request that is not for this server, or not from its own pages."""
        if self._local_names_only and not _is_local(headers.get("host", "")):
            return fault(421, "this server has no keys, so it answers only requests for localhost")
        if method == "POST" and is_cross_site(headers, self._origins):
            return fault(403, "this server does not accept requests from pages of other web sites")
        return None


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name.strip("[]").lower() in LOCAL_NAMES


def _where(error: Exception) -> str:
    """The type and location of an error, without its message, which may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames))
    return f"{type(error).__name__} at {places}"
