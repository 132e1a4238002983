"""Access to the server, privacy of texts, and malformed requests."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

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
from transept.errors import ConfigError

GET = ["/languages", "/frontend/settings", "/health", "/metrics", "/api/models", "/api/runs",
       "/openapi.json", "/spec", "/", "/docs", "/static/style.css", "/static/page.js",
       "/static/explorer.js", "/static/icon.svg"]  # fmt: skip
NEEDS_KEY = {*POST, "/metrics", "/api/runs"}


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
    inner = path.removeprefix("/a/b")
    if inner in POST or inner == "/suggest":
        return client.post(path, json=POST.get(inner, {}), headers=headers)
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
    files = {"/translate_file", "/download_file/{name}"}  # their tests are in test_server_files
    assert {*described} <= {*GET, *POST, *files}
    assert {path for path, methods in described.items() if "post" in methods} - files == {*POST}


def test_key_may_be_in_the_body(locked: httpx.Client) -> None:
    body = {"q": "one", "source": "en", "target": "de"}
    for key, status in ((KEY, 200), ("wrong", 403), (KEY + " ", 403), ("ü", 403)):
        for sent in ({"json": body | {"api_key": key}}, {"data": body | {"api_key": key}}):
            assert locked.post("/translate", **sent).status_code == status  # type: ignore[arg-type]
    assert locked.get("/frontend/settings").json()["keyRequired"] is True


@pytest.mark.parametrize("path", ["/", "/translate", "/nothing", "/static/page.js"])
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


def test_every_origin_is_allowed_if_stated(served: list[AnyServed]) -> None:
    with serving(served, ServerSettings(origin=("*",))) as client:
        answer = client.post(
            "/translate", json=POST["/translate"], headers={"Origin": "https://any.example"}
        )
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "*"


def test_pages_of_other_sites_cannot_send_requests(
    client: httpx.Client, locked: httpx.Client
) -> None:
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    for path, sent in POST.items():
        answer = client.post(path, data=sent, headers=foreign)
        assert answer.status_code == 403
        assert "pages of other web sites" in answer.json()["error"]
    assert client.get("/languages", headers=foreign).status_code == 200
    allowed = foreign | {"Origin": "https://page.example", "Authorization": f"Bearer {KEY}"}
    assert locked.post("/translate", json=POST["/translate"], headers=allowed).status_code == 200


def test_requests_of_an_address_are_limited(served: list[AnyServed]) -> None:
    with serving(served, ServerSettings(rate_limit=2, proxy=("127.0.0.1",))) as client:
        for address in ("192.0.2.1", "192.0.2.2"):
            headers = {"X-Forwarded-For": address}
            answers = [client.post("/detect", json={"q": "one"}, headers=headers) for _ in range(3)]
            assert [one.status_code for one in answers] == [200, 200, 429]
            assert answers[2].json() == {"error": "Slowdown: 2 per 1 minute"}
            assert 1 <= int(answers[2].headers["retry-after"]) <= 30
            assert client.get("/languages", headers=headers).status_code == 200


@pytest.mark.parametrize("path", [*GET, *POST, "/suggest"])
def test_every_path_has_the_prefix(prefixed: httpx.Client, path: str) -> None:
    assert ask(prefixed, f"/a/b{path}").status_code == (403 if path == "/suggest" else 200)
    if path != "/":
        assert ask(prefixed, path).status_code == 404


@pytest.fixture(scope="module")
def prefixed(served: list[AnyServed]) -> Iterator[httpx.Client]:
    with serving(served, ServerSettings(url_prefix="/a/b")) as client:
        yield client


def test_prefix_is_described_logged_and_completed(prefixed: httpx.Client) -> None:
    assert prefixed.get("/a/b/spec").json()["servers"] == [{"url": "/a/b"}]
    moved = prefixed.get("/a/b")
    assert (moved.status_code, moved.headers["location"]) == (307, "/a/b/")
    assert 'route="/a/b/spec"' in prefixed.get("/a/b/metrics").text
    assert "cache-control" not in prefixed.get("/a/b/static/icon.svg").headers


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"origin": ("evil",)}, "origin: 'evil' must be like https://example.org"),
        ({"origin": ("https://a.example/b",)}, "origin: 'https://a.example/b' must be like"),
        ({"proxy": ("nginx",)}, "proxy: 'nginx' is not an IP address"),
        ({"url_prefix": "a/"}, "url_prefix: 'a/' must be a path like /translate"),
        ({"rate_limit": -1}, "rate_limit: -1 must be at least 0"),
    ],
)
def test_invalid_access_settings_are_rejected(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        ServerSettings(**given)
    assert problem in str(error.value)


def test_suggestions_are_rejected_as_in_libretranslate(client: httpx.Client) -> None:
    answer = client.post("/suggest", data={"q": "one", "s": "eins"})
    assert answer.status_code == 403
    assert answer.json() == {"error": "Suggestions are disabled on this server."}


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
