"""Access to the server, privacy of texts, and malformed requests."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from tests.integration.servers import (
    JSON,
    KEY,
    POST,
    every_kind,
    serving,
    small_parser,
    small_transducer,
)

from transept import Transducer
from transept.apps.serve.models import AnyServed, Served
from transept.apps.serve.settings import ServerSettings

GET = ["/languages", "/frontend/settings", "/health", "/metrics", "/api/models",
       "/openapi.json", "/", "/docs", "/static/style.css", "/static/script.js",
       "/static/icon.svg"]  # fmt: skip
NEEDS_KEY = {*POST, "/metrics"}


@pytest.fixture(scope="module")
def served() -> list[AnyServed]:
    return every_kind(small_transducer(), small_parser())


@pytest.fixture(scope="module")
def client(served: list[AnyServed]) -> Iterator[httpx.Client]:
    with serving(served, ServerSettings()) as client:
        yield client


@pytest.fixture(scope="module")
def locked(
    served: list[AnyServed], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"# ours\n{KEY}\n")
    settings = ServerSettings(key_file=keys, origin=("https://page.example",))
    with serving(served, settings) as client:
        yield client


def ask(client: httpx.Client, path: str, **headers: str) -> httpx.Response:
    if path in POST:
        return client.post(path, json=POST[path], headers=headers)
    return client.get(path, headers=headers)


# --- who may ask -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*GET, *POST])
def test_every_path_with_and_without_key(
    client: httpx.Client, locked: httpx.Client, path: str
) -> None:
    assert ask(client, path).status_code == 200
    without, wrong = ask(locked, path), ask(locked, path, Authorization="Bearer wrong")
    with_key = ask(locked, path, Authorization=f"Bearer {KEY}")
    assert with_key.status_code == 200
    if path in NEEDS_KEY:
        assert (without.status_code, wrong.status_code) == (403, 403)
        assert without.json() == {"error": "An API key is required"}
        assert wrong.json() == {"error": "Invalid API key"}
    else:
        assert (without.status_code, wrong.status_code) == (200, 200)


def test_every_route_is_in_that_table(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]
    assert {*described} <= {*GET, *POST}
    assert {path for path, methods in described.items() if "post" in methods} == {*POST}


def test_key_may_be_in_the_body(locked: httpx.Client) -> None:
    body = {"q": "one", "source": "en", "target": "de"}
    for key, status in ((KEY, 200), ("wrong", 403), (KEY + " ", 403), ("ü", 403)):
        for sent in ({"json": body | {"api_key": key}}, {"data": body | {"api_key": key}}):
            assert locked.post("/translate", **sent).status_code == status  # type: ignore[arg-type]
    assert locked.get("/frontend/settings").json()["keyRequired"] is True


@pytest.mark.parametrize("path", ["/", "/translate", "/nothing", "/static/script.js"])
def test_every_response_has_the_security_headers(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in answer.headers
    assert "server" not in answer.headers
    assert len(answer.headers["x-request-id"]) == 16


def test_other_origins_are_allowed_only_if_set(client: httpx.Client, locked: httpx.Client) -> None:
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    assert client.options("/translate", headers=asked).status_code == 405
    allowed = locked.options("/translate", headers=asked)
    assert allowed.headers["access-control-allow-origin"] == "https://page.example"
    assert "access-control-allow-credentials" not in allowed.headers
    stranger = asked | {"Origin": "https://other.example"}
    assert (
        "access-control-allow-origin" not in locked.options("/translate", headers=stranger).headers
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:5000", 200), ("[::1]:5000", 200), ("127.0.0.1", 200), ("evil.example", 421)],
)
def test_only_local_host_names_are_served_without_keys(
    client: httpx.Client, host: str, status: int
) -> None:
    assert client.get("/languages", headers={"Host": host}).status_code == status


def test_no_text_is_logged_or_counted(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for path, body in POST.items():
            client.post(path, json=body | {"q": "secret-words"})
        client.get("/secret-words")
        client.post("/translate", content=b'{"q": "secret-words', headers=JSON)
        client.post("/api/score", json={"q": "secret-words" * 90, "translation": "x"})
    ours = [record for record in caplog.records if record.name.startswith(("transept", "uvicorn"))]
    assert len(ours) >= len(POST)
    assert not any("secret" in record.getMessage() for record in ours)
    figures = client.get("/metrics").text
    assert 'transept_requests_total{route="/translate",status="200"}' in figures
    assert "secret" not in figures


# --- what is broken --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"q": 1, "source": "en", "target": "de"}', "application/json", 400),
        (b'{"q": "\xff", "source": "en", "target": "de"}', "application/json", 400),
        (b'{"q": "\\ud800", "source": "en", "target": "de"}', "application/json", 400),
        (b'{"x": ' + b"[" * 100_000, "application/json", 400),
        (b"q=%FF&source=en&target=de", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"a=b"] * 3_000), "application/x-www-form-urlencoded", 400),
        (b"--x", "multipart/form-data", 400),
        (b"--x\r\n\r\n\r\n--x--", "multipart/form-data; boundary=x", 400),
        (b"<q/>", "application/xml", 415),
    ],
)
def test_malformed_body_is_rejected(
    client: httpx.Client, content: bytes, kind: str, status: int
) -> None:
    answer = client.post("/translate", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert [*answer.json()] == ["error"]


def test_unknown_paths_and_methods_are_rejected_in_json(client: httpx.Client) -> None:
    assert client.get("/nothing").json() == {"error": "Not Found"}
    assert client.get("/static/../app.py").status_code == 404
    wrong = client.get("/translate")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json() == {"error": "Method Not Allowed"}


def test_failure_is_a_500_without_details(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Transducer):
        def translate_units(self, units: object, **options: object) -> NoReturn:
            raise RuntimeError("secret-words")

        translate_feed = translate_units  # type: ignore[assignment]

    with (
        serving([Served("en", "de", small_transducer(kind=Broken))], ServerSettings()) as client,
        caplog.at_level(logging.INFO),
    ):
        answer = client.post("/translate", json=POST["/translate"])
        assert answer.status_code == 500
        assert answer.json() == {"error": "the server failed; its log says where"}
        assert client.get("/health").status_code == 200
    assert "RuntimeError at test_server_refusals.py" in caplog.text
    assert "secret" not in caplog.text
