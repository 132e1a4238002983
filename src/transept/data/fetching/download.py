"""Downloads a file over HTTP, resuming an earlier attempt.

The received bytes are stored in `NAME.part`, and the server's validator (ETag or date) in
`NAME.part.tag`. A later attempt requests the rest with Range, and with If-Range requests the
whole file if it has changed. If a server ignores Range, the whole file is downloaded again.
"""

import http.client
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from transept.errors import DataError
from transept.progress import Watch, no_progress

BLOCK = 1 << 18
TIMEOUT_SECONDS = 30.0
PAUSES = (1.0, 2.0, 4.0)
"""Seconds to wait before each retry. Receiving more bytes restarts the sequence."""

_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")


class DownloadError(DataError):
    """A file could not be downloaded; the message gives the reason."""


class _BrokenError(Exception):
    """An attempt failed and may be retried."""


def download(
    url: str, path: Path, *, watch: Watch = no_progress, pauses: Sequence[float] = PAUSES
) -> None:
    """Download `url` to `path`, which exists only once it is complete. `watch` counts bytes."""
    if not url.startswith(("http://", "https://")):
        raise DownloadError(f"{url}: only http and https URLs are supported")
    partial = _Partial(path)
    failures = 0
    while True:
        before = partial.size
        try:
            _attempt(url, partial, watch)
            partial.finish()
            return
        except _BrokenError as error:
            failures = 1 if partial.size > before else failures + 1
            if failures > len(pauses):
                raise DownloadError(f"{url}: {error}") from error
            time.sleep(pauses[failures - 1])
        except OSError as error:
            raise DownloadError(f"{path} cannot be written: {error}") from error


@dataclass(frozen=True, slots=True)
class _Partial:
    """A partially downloaded file."""

    path: Path

    @property
    def part(self) -> Path:
        return self.path.with_name(self.path.name + ".part")

    @property
    def tag(self) -> Path:
        return self.path.with_name(self.path.name + ".part.tag")

    @property
    def size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def validator(self) -> str | None:
        """Return the validator of the partial file, if the server sent one."""
        return self.tag.read_text(encoding="utf-8") if self.tag.exists() else None

    def begin(self, headers: http.client.HTTPMessage) -> None:
        """Start from scratch, and store the validator of the server's current file."""
        self.part.write_bytes(b"")
        etag = headers.get("ETag", "")
        # A weak ETag (W/…) does not guarantee identical bytes: RFC 9110, 13.1.5.
        strong = etag if etag.startswith('"') else headers.get("Last-Modified")
        if strong:
            self.tag.write_text(strong, encoding="utf-8")
        else:
            self.tag.unlink(missing_ok=True)

    def finish(self) -> None:
        self.part.replace(self.path)
        self.tag.unlink(missing_ok=True)


def _attempt(url: str, partial: _Partial, watch: Watch) -> None:
    """Send one request. Received bytes are kept even if the connection breaks."""
    request = urllib.request.Request(url, headers={"User-Agent": "transept"})
    request.add_header("Accept-Encoding", "identity")
    have = partial.size
    if have:
        request.add_header("Range", f"bytes={have}-")
        if validator := partial.validator():
            request.add_header("If-Range", validator)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            total = _prepare(response, partial, have)
            _receive(response, partial, total, watch)
    except urllib.error.HTTPError as error:
        with error:
            _refused(error, partial, have)
    except urllib.error.URLError as error:
        if isinstance(error.reason, socket.gaierror):  # offline: a retry would not help
            raise DownloadError(f"{url}: {error.reason.strerror}") from error
        raise _BrokenError(str(error.reason)) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _BrokenError(str(error) or type(error).__name__) from error


def _prepare(response: http.client.HTTPResponse, partial: _Partial, have: int) -> int | None:
    """Prepare the part file for this response; return the total size, if known."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        match = _RANGE.match(response.headers.get("Content-Range", ""))
        if match is None or match[1] != str(have):
            partial.part.unlink()
            raise _BrokenError("the server did not send the requested range")
        return None if match[2] == "*" else int(match[2])
    partial.begin(response.headers)
    length = response.headers.get("Content-Length")
    return int(length) if length else None


def _receive(response: IO[bytes], partial: _Partial, total: int | None, watch: Watch) -> None:
    done = partial.size
    with partial.part.open("ab") as file:
        watch(done, total)
        for block in _blocks(response):
            file.write(block)
            done += len(block)
            watch(done, total)
    if total is not None and done != total:
        raise _BrokenError(f"the connection ended after {done:,} of {total:,} bytes")


def _blocks(response: IO[bytes]) -> Iterator[bytes]:
    while True:
        try:
            block = response.read(BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenError(str(error) or type(error).__name__) from error
        if not block:
            return
        yield block


def _refused(error: urllib.error.HTTPError, partial: _Partial, have: int) -> None:
    """Handle an HTTP error: return if the file is complete, otherwise raise to retry or give up."""
    if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
        match = _RANGE.match(error.headers.get("Content-Range", ""))
        if match and match[2] == str(have):
            return
        partial.part.unlink()
        raise _BrokenError("the file on the server has become shorter")
    if error.code in (408, 425, 429) or error.code >= 500:
        raise _BrokenError(f"the server answered {error.code} {error.reason}")
    raise DownloadError(f"{error.url}: the server answered {error.code} {error.reason}")
