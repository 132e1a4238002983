"""A small tokenizer, sentences for it, and a web server that fails on demand."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer

Pairs = list[tuple[str, str]]
WORDS = ("the", "of", "and", "a", "is", "das", "der", "und", "ist", "Haus", "Baum", "house", "grün")


@pytest.fixture(scope="session")
def tokenizer_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tokenizer") / "joint"
    lines = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
    train_tokenizer(lines, vocab_size=320).save(directory)
    return directory


@pytest.fixture(scope="session")
def tokenizer(tokenizer_directory: Path) -> Tokenizer:
    return Tokenizer.load(tokenizer_directory)


@pytest.fixture(scope="session")
def sentence_pairs() -> Callable[[int], Pairs]:
    """Distinct pairs of varying length, always the same."""

    def make(count: int) -> Pairs:
        return [
            (
                " ".join(WORDS[(i + k) % len(WORDS)] for k in range(3 + i % 7)) + f" {i}",
                " ".join(WORDS[(2 * i + k) % len(WORDS)] for k in range(3 + i % 5)) + f" {i}",
            )
            for i in range(count)
        ]

    return make


@dataclass
class Site:
    """The files of the server, its failures, and the requests it received."""

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    etag: str | None = '"one"'
    cut_after: list[int] = field(default_factory=list)
    """Bytes to send before closing the connection, one entry per response."""
    failures: list[int] = field(default_factory=list)
    """Status codes of the first responses."""
    requests: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(headers)
        if self.failures:
            request.send_error(self.failures.pop(0))
            return
        content = self.files.get(request.path.lstrip("/"))
        if content is None:
            request.send_error(404)
            return
        start = self._start(headers)
        if start is not None and start >= len(content):
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(content)}")
            request.end_headers()
            return
        request.send_response(200 if start is None else 206)
        if start is not None:
            span = f"bytes {start}-{len(content) - 1}/{len(content)}"
            request.send_header("Content-Range", span)
        body = content[start or 0 :]
        request.send_header("Content-Length", str(len(body)))
        if self.etag:
            request.send_header("ETag", self.etag)
        request.end_headers()
        request.wfile.write(body[: self.cut_after.pop(0)] if self.cut_after else body)

    def _start(self, headers: dict[str, str]) -> int | None:
        unchanged = headers.get("if-range") in (None, self.etag)
        if not self.ranges or "range" not in headers or not unchanged:
            return None
        return int(headers["range"].removeprefix("bytes=").removesuffix("-"))


@pytest.fixture
def site() -> Iterator[Site]:
    """A server on the loopback interface, without files."""
    running = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            running.answer(self)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.url = f"http://127.0.0.1:{server.server_port}"
        yield running
        server.shutdown()
        thread.join()


@pytest.fixture
def unused_address() -> str:
    """An address without a server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
