"""Requests that are too large, too slow or invalid HTTP."""

import http.client
import json
import resource
import socket
import time
from collections.abc import Iterator

import httpx
import pytest
from tests.integration.servers import PATIENCE, serving, small_transducer, talk
from tests.random_networks import any_output_accepted

from transept.apps.serve.models import Served
from transept.apps.serve.settings import ServerSettings

HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
IMPATIENT = ServerSettings(body_seconds=0.5)


@pytest.fixture(autouse=True, scope="module")
def random_networks() -> Iterator[None]:
    with any_output_accepted():
        yield


@pytest.fixture(scope="module")
def strict() -> Iterator[httpx.Client]:
    """A server with a small body limit and a long timeout."""
    settings = ServerSettings(body_limit=10_000, body_seconds=PATIENCE)
    with serving([Served("en", "de", small_transducer())], settings) as client:
        yield client


@pytest.fixture(scope="module")
def impatient() -> Iterator[httpx.Client]:
    """A server with a short timeout for headers and bodies."""
    with serving([Served("en", "de", small_transducer())], IMPATIENT) as client:
        yield client


def test_oversized_body_gets_413(strict: httpx.Client) -> None:
    """Most clients do not read a response before they have sent the whole body."""
    port = strict.base_url.port
    for chunked in (False, True):
        content = (b" " * 100_000 for _ in range(50)) if chunked else b" " * 5_000_000
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("POST", "/translate", content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 413
        assert b"more than 10,000 bytes; send less" in answer.read()


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "9" * 5000])
def test_invalid_content_length_is_rejected(strict: httpx.Client, length: str) -> None:
    answer = talk(strict, HEAD + f"Content-Length: {length}\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))


def test_sixty_megabytes_do_not_raise_memory(strict: httpx.Client) -> None:
    def much() -> Iterator[bytes]:
        for _ in range(60):
            yield b" " * 1_000_000

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        answer = strict.post("/translate", content=much(), headers={"Content-Type": "text/json"})
        assert answer.status_code == 413
    except httpx.WriteError:
        pass  # the server had answered and closed before all was sent
    assert strict.get("/health").status_code == 200
    risen = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert risen < 10  # megabytes


def test_slow_body_times_out(impatient: httpx.Client) -> None:
    answer = talk(impatient, HEAD + b'Content-Length: 50\r\n\r\n{"q": ')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"did not arrive within 0.5 s" in answer


@pytest.mark.parametrize("sent", [b"", b"POST /translate HTTP/1.1\r\nHost:", b"G"])
def test_slow_header_times_out(impatient: httpx.Client, sent: bytes) -> None:
    assert talk(impatient, sent) == b"", "only the server can have closed the connection"


@pytest.mark.parametrize(
    "sent",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_invalid_http_is_rejected(strict: httpx.Client, sent: bytes) -> None:
    assert talk(strict, sent).startswith(b"HTTP/1.1 400 ")
    assert strict.get("/health").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 60_000,
        b"GET /" + b"x" * 60_000 + HOST + b"\r\n",
        b"GET /" + HOST + b"X: " + b"x" * 60_000,
        b"GET /" + HOST + b"X: " + b"x" * 60_000 + b"\r\n\r\n",
        b"GET /" + HOST + b"X: x\r\n" * 3_000 + b"\r\n",
    ],
)
def test_large_header_is_rejected_also_if_it_is_complete(strict: httpx.Client, sent: bytes) -> None:
    answer = talk(strict, sent)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"more than 16,384 bytes" in answer
    fits = talk(
        strict, b"GET /health" + HOST + b"Connection: close\r\nX: %b\r\n\r\n" % (b"x" * 16_000)
    )
    assert fits.startswith(b"HTTP/1.1 200 ")


def test_two_lengths_of_a_body_close_the_connection(strict: httpx.Client) -> None:
    content = json.dumps({"q": "one", "source": "en", "target": "de"}).encode()
    both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
    answer = talk(strict, HEAD + both + chunk + b"GET /health" + HOST + b"\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("start", [b"GET /", b"POST /nothing"])
def test_slow_body_that_is_not_read_times_out(impatient: httpx.Client, start: bytes) -> None:
    port = impatient.base_url.port
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(start + HOST + b"Content-Length: 9999999\r\n\r\n")

        def send_slowly() -> None:
            while True:
                connection.sendall(b"x")
                time.sleep(0.01)

        # Only the server can end this.
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_slowly()
