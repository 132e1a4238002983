"""The server under load and with disconnects."""

import asyncio
import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import (
    PATIENCE,
    POST,
    Held,
    every_kind,
    serving,
    small_parser,
    small_transducer,
)
from tests.random_networks import any_output_accepted
from uvicorn.protocols.http.h11_impl import H11Protocol

from transept import Transducer
from transept.api.config import Format
from transept.api.documents import Document
from transept.apps.serve.models import Served
from transept.apps.serve.settings import ServerSettings

TEXTS = [f"{a} {b}. The end is near, so be it {a}!" for a in ("one", "two", "three", "four")
         for b in ("five", "six", "seven", "eight", "nine", "ten")]  # fmt: skip
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def body(text: object) -> dict[str, object]:
    return {"q": text, "source": "en", "target": "de"}


@pytest.fixture(autouse=True, scope="module")
def random_networks() -> Iterator[None]:
    with any_output_accepted():
        yield


@pytest.fixture
def held() -> Held:
    model = small_transducer(kind=Held)
    assert isinstance(model, Held)
    return model


@pytest.fixture
def narrow(held: Held) -> Iterator[httpx.Client]:
    """A server that decodes two sentences at a time, when allowed to, with a queue of four."""
    settings = ServerSettings(
        batch_sentences=2, sentence_limit=4, queue_limit=4, gather_ms=0, deadline=PATIENCE
    )
    with serving([Served("en", "de", held)], settings) as client:
        yield client
        held.let.set()


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


def figure(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(f"{name} ")]
    return float(value)


def answered(client: httpx.Client, route: str) -> float:
    """The number of completed requests for a path, whatever their status."""
    lines = client.get("/metrics").text.splitlines()
    counts = [line for line in lines if line.startswith("transept_requests_total")]
    return sum(float(line.split()[-1]) for line in counts if f'route="{route}"' in line)


def waiting(client: httpx.Client) -> float:
    return figure(client, "transept_queue_sentences")


def streaming(client: httpx.Client) -> float:
    return figure(client, "transept_streams")


def test_every_connection_sends_without_delay(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second part of a response does not wait for the acknowledgement of the first."""
    connect, without_delay = H11Protocol.connection_made, list[bool]()

    def connection_made(self: H11Protocol, transport: Any) -> None:
        ours = transport.get_extra_info("socket")
        without_delay.append(bool(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        connect(self, transport)

    monkeypatch.setattr(H11Protocol, "connection_made", connection_made)
    with serving([Served("en", "de", held)], ServerSettings()) as client:
        assert client.get("/languages").status_code == 200
    assert without_delay == [True]


# --- together --------------------------------------------------------------------------------


def test_batched_requests_get_the_same_results_as_single_ones(held: Held) -> None:
    alone = small_transducer()
    with (
        serving([Served("en", "de", held)], ServerSettings(batch_seconds=60)) as client,
        ThreadPoolExecutor(len(TEXTS) + 1) as pool,
    ):
        first = pool.submit(client.post, "/translate", json=body("one"))
        wait_until(lambda: held.begun)  # the rest comes while this one is held
        rest = [pool.submit(client.post, "/translate", json=body(text)) for text in TEXTS]
        wait_until(lambda: waiting(client) == 2 * len(TEXTS))
        held.let.set()
        answers = [future.result().json()["translatedText"] for future in [first, *rest]]
    assert answers == [one.text for one in alone.translate(["one", *TEXTS], source_language="en")]
    assert held.begun == [1, 2 * len(TEXTS)]


def test_a_long_text_does_not_keep_a_short_one_waiting(held: Held) -> None:
    with (
        serving([Served("en", "de", held)], ServerSettings(batch_sentences=2)) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        long = pool.submit(client.post, "/translate", json=body("one. \n" * 40))
        wait_until(lambda: held.begun)
        short = pool.submit(client.post, "/translate", json=body("two"))
        wait_until(lambda: waiting(client) == 39)
        held.let.set(times=3)  # of the 20 batches that the long text needs
        assert short.result().status_code == 200
        assert not long.done()
        held.let.set()
        assert long.result().status_code == 200


def test_too_long_sentence_does_not_keep_a_short_one_waiting(held: Held) -> None:
    sentence = "one two three four five six seven eight nine ten, " * 8
    alone = small_transducer().translate(sentence, split=False, too_long="split").text
    with (
        serving([Served("en", "de", held)], ServerSettings(batch_sentences=2)) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        long = pool.submit(client.post, "/translate", json=body(sentence))
        wait_until(lambda: held.begun)
        pieces = waiting(client)
        assert pieces > 3, "each waits for its turn"
        short = pool.submit(client.post, "/translate", json=body("two"))
        wait_until(lambda: waiting(client) == pieces + 1)
        held.let.set(times=2)  # the first batch, and the one with the short text
        assert short.result().status_code == 200
        assert not long.done()
        held.let.set()
        assert long.result().json()["translatedText"] == alone
        with client.stream("POST", "/api/stream", json={"q": sentence}) as stream:
            assert json.dumps(alone, ensure_ascii=False) in stream.read().decode()


def test_a_marked_sentence_that_is_too_long_is_streamed_as_translated(held: Held) -> None:
    sentence = "<b>one two</b> " + "three four five six seven eight nine ten, " * 8
    held.let.set()
    with serving([Served("en", "de", held)], ServerSettings()) as client:
        whole = client.post("/translate", json=body(sentence) | {"format": "html"}).json()
        held.begun.clear()
        asked = {"q": sentence, "format": "html"}
        with client.stream("POST", "/api/stream", json=asked) as stream:
            seen = stream.read().decode()
    assert held.begun[0] == 1
    assert json.dumps(whole["translatedText"], ensure_ascii=False) in seen


# --- too much --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/translate", "/detect", "/api/score", "/api/parse"])
def test_request_with_too_many_texts_is_rejected_before_splitting(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    split: list[str] = []
    monkeypatch.setattr(Document, "of", lambda source, *rest: split.append(source))
    served = every_kind(small_transducer(), small_parser())
    texts = [""] * 100_000
    with serving(served, ServerSettings()) as client:
        asked = POST[path] | {name: texts for name in ("q", "translation") if name in POST[path]}
        answer = client.post(path, json=asked)
        least = client.post("/translate", json=body([""] * 501))
    wanted = "Invalid request: request (100000) exceeds sentence limit (500); send fewer at a time"
    assert (answer.status_code, answer.json()["error"]) == (400, wanted)
    assert least.status_code == 400
    assert split == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/translate", {"q": "one", "source": "en", "target": "de"}),
        ("/api/nbest", {"q": "one"}),
        ("/api/stream", {"q": "one"}),
    ],
)
def test_other_requests_are_answered_while_a_text_is_split(
    monkeypatch: pytest.MonkeyPatch, held: Held, path: str, asked: dict[str, str]
) -> None:
    begun, let, on_loop = threading.Event(), threading.Event(), list[bool]()
    split = Document.of

    def slow(source: str, form: Format, language: str) -> Document:
        on_loop.append(runs_a_loop())
        if not begun.is_set():
            begun.set()
            assert let.wait(PATIENCE)
        return split(source, form, language)

    monkeypatch.setattr(Document, "of", slow)
    held.let.set()
    with (
        serving([Served("en", "de", held)], ServerSettings()) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        blocked = pool.submit(client.post, path, json=asked)
        try:
            assert begun.wait(PATIENCE)
            assert on_loop == [False]
            assert client.get("/languages").status_code == 200
            assert client.post("/translate", json=body("two")).status_code == 200
            assert not blocked.done()
        finally:
            let.set()
        assert blocked.result().status_code == 200


def runs_a_loop() -> bool:
    """Whether this thread is running an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_requests_beyond_the_queue_limit_get_429(narrow: httpx.Client, held: Held) -> None:
    with ThreadPoolExecutor(3) as pool:
        begun = pool.submit(narrow.post, "/translate", json=body("one\ntwo"))
        wait_until(lambda: held.begun)
        queued = pool.submit(narrow.post, "/translate", json=body("one\ntwo\nthree\nfour"))
        wait_until(lambda: waiting(narrow) == 4)
        refused = narrow.post("/translate", json=body("one more"))
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["error"].startswith("Slowdown: the server is busy; try again in")
        assert narrow.get("/health").status_code == 200
        held.let.set()
        assert [begun.result().status_code, queued.result().status_code] == [200, 200]
        assert narrow.post("/translate", json=body("one more")).status_code == 200


def test_deadline_aborts_the_request_and_its_decoding(held: Held) -> None:
    settings = ServerSettings(deadline=0.3, batch_sentences=1, gather_ms=0)
    with serving([Served("en", "de", held)], settings) as client:
        late = client.post("/translate", json=body("one\ntwo"))
        assert late.status_code == 503
        assert "longer than 0.3 s" in late.json()["error"]
        assert waiting(client) == 0
        with client.stream("POST", "/api/stream", json={"q": "one"}) as stream:
            assert "event: error" in stream.read().decode()
        held.let.set()
        assert client.get("/health").status_code == 200
    assert sum(held.begun) <= 1, "the second sentence is never decoded"


def test_disconnected_client_is_not_decoded_for(narrow: httpx.Client, held: Held) -> None:
    three = b'{"q": "one\\ntwo\\nthree", "source": "en", "target": "de"}'
    with connected(narrow, b"/translate", three):
        wait_until(lambda: held.begun)
        assert waiting(narrow) == 1
    wait_until(lambda: waiting(narrow) == 0)
    held.let.set()
    assert narrow.post("/translate", json=body("one")).status_code == 200
    assert held.begun == [2, 1]
    assert 'route="/translate",status="499"' in narrow.get("/metrics").text


def test_many_disconnects_leak_nothing(held: Held) -> None:
    held.let.set()
    with serving([Served("en", "de", held)], ServerSettings()) as client:
        n_threads, n_files, n_tasks = own_threads(), open_files(), open_tasks()
        content = b'{"q": "a", "source": "en", "target": "de"}'
        for path in (b"/translate", b"/api/stream"):
            for _ in range(100):
                connected(client, path, content).close()
        wait_until(lambda: waiting(client) == streaming(client) == 0)
        assert client.post("/translate", json=body("one")).status_code == 200
        assert own_threads() == n_threads
        wait_until(lambda: open_files() <= n_files + 2)
        wait_until(lambda: open_tasks() <= n_tasks + 1)


# --- streams ---------------------------------------------------------------------------------


def test_first_sentences_of_a_stream_are_decoded_first(held: Held) -> None:
    with (
        serving([Served("en", "de", held)], ServerSettings()) as client,
        ThreadPoolExecutor(1) as pool,
        client.stream("POST", "/api/stream", json={"q": "one. \n" * 40}) as stream,
    ):
        lines = stream.iter_lines()
        wait_until(lambda: held.begun)
        held.let.set(times=1)
        assert next(lines) == "event: part"
        wait_until(lambda: len(held.begun) == 2)  # the rest of the stream is held
        other = pool.submit(client.post, "/translate", json=body("two"))
        wait_until(lambda: waiting(client) == 40 - 1 - 4 + 1)
        held.let.set(times=2)  # the second batch, and the one with the other request
        assert other.result().status_code == 200
        held.let.set()
        assert "event: done" in list(lines)
    assert held.begun == [1, 4, 16 + 1, 19]


def test_stream_and_translation_share_a_batch(held: Held) -> None:
    with serving([Served("en", "de", held)], ServerSettings()) as client, ThreadPoolExecutor() as p:
        first = p.submit(client.post, "/translate", json=body("one"))
        wait_until(lambda: held.begun)
        both = [
            p.submit(client.post, "/translate", json=body("two\nthree")),
            p.submit(client.post, "/api/stream", json=body("two\nthree")),
        ]
        wait_until(lambda: waiting(client) == 4)
        held.let.set()
        assert first.result().status_code == 200
        answer, stream = (one.result() for one in both)
    assert held.begun == [1, 3, 1]
    assert json.dumps(answer.json()["translatedText"], ensure_ascii=False) in stream.text


def test_stream_stops_when_its_client_disconnects(held: Held) -> None:
    with serving([Served("en", "de", held)], ServerSettings()) as client:
        with connected(client, b"/api/stream", b'{"q": "one\\ntwo\\nthree"}'):
            wait_until(lambda: held.begun)
            assert (streaming(client), waiting(client)) == (1, 2)
        wait_until(lambda: streaming(client) == waiting(client) == 0)
        held.let.set()
        assert client.post("/translate", json=body("one")).status_code == 200
    assert held.begun == [1, 1]


def test_stream_is_cancelled_if_the_client_disconnects_before_it_starts(held: Held) -> None:
    with serving([Served("en", "de", held)], ServerSettings()) as client:
        with connected(client, b"/translate", b'{"q": "a", "source": "en", "target": "de"}'):
            wait_until(lambda: held.begun)
            for _ in range(20):
                connected(client, b"/api/stream", b'{"q": "one"}').close()
            wait_until(lambda: answered(client, "/api/stream") == 20)
        assert streaming(client) == 0
        held.let.set()
        assert client.post("/translate", json=body("one")).status_code == 200
    assert held.begun == [1, 1]


def test_streams_beyond_the_limit_are_rejected(held: Held) -> None:
    settings = ServerSettings(stream_limit=1)
    with serving([Served("en", "de", held)], settings) as client:
        with connected(client, b"/api/stream", b'{"q": "one"}'):
            wait_until(lambda: streaming(client) == 1)
            refused = client.post("/api/stream", json={"q": "one"})
            assert refused.status_code == 429
            assert int(refused.headers["retry-after"]) >= 1
        wait_until(lambda: streaming(client) == 0)
        held.let.set()
        assert "event: done" in client.post("/api/stream", json={"q": "one"}).text


def test_failed_stream_ends_with_an_error_event(caplog: pytest.LogCaptureFixture) -> None:
    was_seen = threading.Event()

    class Broken(Transducer):
        def translate_feed(self, feed: Any, *, drafts: Any = None, **options: Any) -> Any:
            def fail(number: int, draft: Any) -> None:
                drafts(number, draft)
                if options["beam_size"] == 2:
                    assert was_seen.wait(PATIENCE)
                    raise RuntimeError("secret-words")

            return super().translate_feed(feed, drafts=fail, **options)

    model = small_transducer(seed=3, kind=Broken)
    with serving([Served("en", "de", model)], ServerSettings()) as client:
        content = b'{"q": "one", "beam_size": 2}'
        with connected(client, b"/api/stream", content) as connection:
            seen = b""
            while b"event: part" not in seen:
                seen += connection.recv(65536)
            was_seen.set()
            seen += b"".join(iter(lambda: connection.recv(65536), b""))
        assert b"event: part" in seen
        assert b'{"error":"the server failed; its log says where"}' in seen
        assert not seen.endswith(b"0\r\n\r\n"), "it is not whole"
        assert client.post("/translate", json=body("one")).status_code == 200
    assert "RuntimeError at" in caplog.text
    assert "secret" not in caplog.text


def connected(client: httpx.Client, path: bytes, content: bytes) -> socket.socket:
    """A connection over which a request was sent."""
    connection = socket.create_connection(("127.0.0.1", client.base_url.port))
    head = HEAD.replace(b"/translate", path)
    connection.sendall(head + b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
    return connection


def own_threads() -> int:
    """The threads, except the pool of workers, which keeps a few idle ones for later requests."""
    return sum("worker" not in thread.name for thread in threading.enumerate())


def open_tasks() -> int:
    tasks = [one for one in gc.get_objects() if type(one) is asyncio.Task]
    return sum(not task.done() for task in tasks)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
