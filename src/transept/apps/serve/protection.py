"""Access by keys and host names, security headers, and the log, which never holds a text."""

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from transept.apps.serve.answers import FAILED, fault
from transept.apps.serve.batching import StoppingError
from transept.apps.serve.metrics import Metrics
from transept.errors import ConfigError, Problem

log = logging.getLogger("transept.apps.serve")

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


class Keys:
    """The API keys that are accepted. Only their hashes are kept."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        self._digests = tuple(digests)

    @classmethod
    def read(cls, path: Path | None) -> "Keys":
        """The keys in a file, one in each line; none if there is no file."""
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
            raise ConfigError([Problem("key_file", "has no key in it", str(path))])
        return cls(_digest_of_line(line, f"{path}, line {number}") for number, line in wanted)

    @property
    def required(self) -> bool:
        """Whether clients need a key."""
        return bool(self._digests)

    def accept(self, key: str | None) -> bool:
        """Whether a key is accepted. The time that this takes tells nothing about the keys."""
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
        try:
            found = bytes.fromhex(digest)
        except ValueError:
            found = b""
        if len(found) == hashlib.sha256().digest_size:
            return found
        raise ConfigError([Problem("key_file", "is not sha256: and 64 hexadecimal digits", place)])
    if len(line) < LEAST_KEY:
        what = f"is shorter than {LEAST_KEY} characters: make one with `openssl rand -hex 16`"
        raise ConfigError([Problem("key_file", what, place)])
    return _digest(line)


class Envelope:
    """Middleware around every request.

    It checks the host name, gives the request a number, adds headers to its answer, turns an
    unexpected exception into an answer, writes a line to the log, and counts the request.
    """

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, paths: Iterable[str], local_names_only: bool
    ) -> None:
        self._app, self._metrics, self._paths = app, metrics, frozenset(paths)
        self._local_names_only = local_names_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # A client can write any text into a path, so only known paths are logged.
        route = scope["path"] if scope["path"] in self._paths else "other"
        number, start, status = secrets.token_hex(8), time.perf_counter(), 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers["X-Request-ID"] = number
                if not route.startswith("/static"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        try:
            if self._local_names_only and not _is_local(Headers(scope=scope).get("host", "")):
                refusal = fault(421, "this server answers only as localhost; see --no-key")
                await refusal(scope, receive, send_on)
            else:
                await self._app(scope, receive, send_on)
        except asyncio.CancelledError:
            # Only a server that stops, and has waited long enough, cancels a request.
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


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    return name.strip("[]").lower() in LOCAL_NAMES


def _where(error: Exception) -> str:
    """The type and the place of an error, but not its message: that may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(frames))
    return f"{type(error).__name__} at {places}"
