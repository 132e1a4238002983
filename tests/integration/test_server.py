"""Every path of the server, as clients meet it."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import JSON, KEY, serving, small_parser, small_transducer

from transept import Parser, Transducer
from transept.errors import DataError
from transept.serving.models import AnyServed, Served, ServedParser
from transept.serving.settings import ServerSettings
from transept.text.trees import escape

TEXT = "one two three. The end is near! So be it."
GET = ["/languages", "/frontend/settings", "/health", "/livez", "/readyz", "/metrics",
       "/openapi.json", "/", "/docs", "/static/style.css", "/static/script.js",
       "/static/icon.svg"]  # fmt: skip
POST = {
    "/translate": {"q": "one", "source": "en", "target": "de"},
    "/detect": {"q": "the end"},
    "/api/stream": {"q": "one"},
    "/api/nbest": {"q": "one"},
    "/api/score": {"q": "one", "translation": "two"},
    "/api/attention": {"q": "one"},
    "/api/parse": {"q": "one two"},
}
NEEDS_KEY = {*POST, "/metrics"}


@pytest.fixture(scope="module")
def transducer() -> Transducer:
    return small_transducer()


@pytest.fixture(scope="module")
def parser() -> Parser:
    return small_parser()


@pytest.fixture(scope="module")
def served(transducer: Transducer, parser: Parser) -> list[AnyServed]:
    return [
        Served("en", "de", transducer),
        Served("de", "en", small_transducer(2)),
        ServedParser(parser),
    ]


@pytest.fixture(scope="module")
def client(served: list[AnyServed]) -> Iterator[httpx.Client]:
    with serving(
        served, ServerSettings(sentence_limit=50, char_limit=2_000, weight_limit=5_000)
    ) as client:
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


# --- LibreTranslate's API --------------------------------------------------------------------


def test_a_text_is_translated_as_in_python(client: httpx.Client, transducer: Transducer) -> None:
    expected = transducer.translate(TEXT, source_language="en").text
    body = {"q": TEXT, "source": "en", "target": "de", "format": "text", "api_key": ""}
    boundary = {"files": {name: (None, value) for name, value in body.items()}}
    for sent in ({"json": body}, {"data": body}, {"params": body}, boundary):
        answer = client.post("/translate", **sent)
        assert answer.status_code == 200
        assert answer.json() == {"translatedText": expected}


def test_a_list_is_answered_by_a_list(client: httpx.Client, transducer: Transducer) -> None:
    texts = ["one two", "", " the end.\n"]
    expected = [one.text for one in transducer.translate(texts)]
    for sent in ({"json": {"q": texts, "source": "en", "target": "de"}},
                 {"data": {"q": texts, "source": "en", "target": "de"}}):  # fmt: skip
        assert client.post("/translate", **sent).json() == {"translatedText": expected}  # type: ignore[arg-type]
    empty = client.post("/translate", json={"q": [], "source": "en", "target": "de"})
    assert empty.json() == {"translatedText": []}


def test_alternatives_do_not_change_the_best(client: httpx.Client) -> None:
    body = {"q": "one two", "source": "en", "target": "de"}
    alone = client.post("/translate", json=body).json()["translatedText"]
    answer = client.post("/translate", json=body | {"alternatives": 3}).json()
    assert answer["translatedText"] == alone
    assert 1 <= len(answer["alternatives"]) <= 3
    assert alone not in answer["alternatives"]
    many = client.post("/translate", json=body | {"alternatives": 10**9, "q": ["one two"]}).json()
    assert many["alternatives"] == [answer["alternatives"]]


def test_a_guessed_language_is_told(client: httpx.Client) -> None:
    body = {"q": "the end is near", "source": "auto", "target": "de"}
    found = client.post("/translate", json=body).json()["detectedLanguage"]
    assert found["language"] == "en"
    assert found["confidence"] > 90
    german = {"q": ["das ist nicht der Tag"], "source": "auto", "target": "de"}
    answer = client.post("/translate", json=german).json()
    assert answer["translatedText"] == german["q"]  # it is German already
    assert answer["detectedLanguage"][0]["language"] == "de"
    (best, other) = client.post("/detect", data={"q": "wir sind nicht da"}).json()
    assert (best["language"], other["language"]) == ("de", "en")


def test_tags_stay_in_place(client: httpx.Client) -> None:
    text = '<p class="x">one <b>two</b> &lt;three&gt;</p>\n<br/><p>The end.</p>'
    body = {"q": text, "source": "en", "target": "de", "format": "html"}
    answer = client.post("/translate", json=body).json()["translatedText"]
    for before, after in zip(text.split("<")[1:], answer.split("<")[1:], strict=True):
        assert before.partition(">")[0] == after.partition(">")[0]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": "zz"}, "zz is not supported"),
        (
            {"format": "pdf"},
            "Invalid request: Invalid enum value 'pdf' - at `$.format`; choose from text, html",
        ),
        ({"alternatives": -1}, "Invalid request: Expected `int` >= 0 - at `$.alternatives`"),
        ({"q": "x" * 2_001}, "Invalid request: request (2001) exceeds text limit (2000)"),
        ({"q": "a.\n" * 51}, "Invalid request: request (51) exceeds sentence limit (50)"),
    ],
)
def test_what_cannot_be_meant_is_said(
    client: httpx.Client, change: dict[str, object], error: str
) -> None:
    body = {"q": "one", "source": "en", "target": "de"} | change
    body = {name: value for name, value in body.items() if value is not None}
    answer = client.post("/translate", json=body)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_what_is_served_is_told(client: httpx.Client) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": ["en"]},
    ]
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 2_000
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert client.get("/health").json() == {"status": "ok"}


# --- transept's own --------------------------------------------------------------------------


def test_n_best_is_that_of_python(client: httpx.Client, transducer: Transducer) -> None:
    expected = transducer.translate(TEXT, beam_size=6, n_best=3, length_penalty=0.2)
    body = {"q": TEXT, "n_best": 3, "beam_size": 6, "length_penalty": 0.2}
    answer = client.post("/api/nbest", json=body).json()
    assert (answer["source"], answer["target"]) == ("en", "de")
    assert [one["text"] for one in answer["outputs"]] == [one.text for one in expected.outputs]
    scores = [one["score"] for one in answer["outputs"]]
    assert scores == pytest.approx([one.score for one in expected.outputs], abs=1e-4)


@pytest.mark.parametrize(
    "change", [{"n_best": 5, "beam_size": 4}, {"n_best": 22}, {"n_best": 0}, {"beem_size": 3},
               {"length_penalty": -1}, {"source": "de", "target": "de"}, {"source": "zz"}]
)  # fmt: skip
def test_n_best_refuses_what_it_cannot_do(client: httpx.Client, change: dict[str, object]) -> None:
    answer = client.post("/api/nbest", json={"q": "one"} | change)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_score_is_that_of_python(client: httpx.Client, transducer: Transducer) -> None:
    answer = client.post("/api/score", json={"q": ["one", "two"], "translation": ["the", "end"]})
    expected = transducer.score(["one", "two"], ["the", "end"])
    for got, wanted in zip(answer.json()["scores"], expected, strict=True):
        assert got["log_probability"] == pytest.approx(wanted.log_probability, abs=1e-4)
        assert got["tokens"] == list(wanted.tokens)
    uneven = client.post("/api/score", json={"q": ["one"], "translation": ["the", "end"]})
    assert uneven.json() == {"error": "Invalid request: each q needs one translation"}
    long = client.post("/api/score", json={"q": ["one", "one " * 200], "translation": ["a", "b"]})
    assert long.status_code == 400
    assert "the model reads 40" in long.json()["error"]


def events(answer: httpx.Response) -> list[tuple[str, dict[str, str]]]:
    """The names and contents of what a stream sent."""
    lines = [line for line in answer.iter_lines() if line]
    names = [line.removeprefix("event: ") for line in lines[::2]]
    return list(zip(names, (json.loads(line.removeprefix("data: ")) for line in lines[1::2]),
                    strict=True))  # fmt: skip


@pytest.mark.parametrize("form", ["text", "html"])
@pytest.mark.parametrize("beam_size", [None, 1])
def test_a_stream_adds_up_to_the_translation(
    client: httpx.Client, form: str, beam_size: int | None
) -> None:
    text = f"  {TEXT}\n\nOne <b>two</b> &lt;i&gt;.  "
    body = {"q": text, "source": "en", "target": "de", "format": form}
    with client.stream("POST", "/api/stream", json=body | {"beam_size": beam_size}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        *parts, (name, done) = events(answer)
    assert name == "done"
    assert {name for name, _ in parts} == {"part"}
    assert len(parts) > 20, "it comes token by token"
    assert "".join(part["text"] for _, part in parts) == done["text"]
    if beam_size is None:
        assert done["text"] == client.post("/translate", json=body).json()["translatedText"]
        assert any(part["tail"] for _, part in parts)
    if form == "html":
        assert "<b>" in done["text"]
        assert "<i>" not in done["text"]


def test_an_empty_stream_is_done_at_once(client: httpx.Client) -> None:
    for text in ("", " \n"):
        with client.stream("POST", "/api/stream", json={"q": text}) as answer:
            *_, (name, done) = events(answer)
        assert (name, done["text"]) == ("done", text)


@pytest.mark.parametrize("tokens", ["words", "pieces"])
def test_attention_is_that_of_python(
    client: httpx.Client, transducer: Transducer, tokens: str
) -> None:
    seen = transducer.attend("one two.", "the end.")
    expected = (seen.joined() if tokens == "words" else seen).described()
    body = {"q": "one two.", "translation": "the end.", "tokens": tokens}
    every = body | {"kinds": ["encoder", "decoder", "source"]}
    answer = client.post("/api/attention", json=every).json()
    assert answer == json.loads(json.dumps(expected)) | {"layers": [1, 2], "heads": [1, 2]}

    some = client.post("/api/attention", json=body | {"layers": [2], "heads": [1]}).json()
    assert (some["layers"], some["heads"]) == ([2], [1])
    assert [*some["attention"]] == ["source"]
    whole = expected["attention"]["source"]["weights"]
    assert some["attention"]["source"]["weights"] == [[whole[1][0]]]


def test_attention_of_the_models_own_translation(
    client: httpx.Client, transducer: Transducer
) -> None:
    answer = client.post("/api/attention", json={"q": "one two"}).json()
    assert answer["target"] == transducer.translate("one two").text


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"layers": [3]}, "layers: the model has 2, and 3 is none of them"),
        ({"heads": [1, 9]}, "heads: the model has 2, and 9 is none of them"),
        ({"kinds": []}, "Expected `array` of length >= 1"),
        ({"q": " "}, "there is no word in the source"),
        ({"q": "one " * 60}, "the model reads 40"),
        ({"translation": "one " * 60}, "the model reads 40"),
        ({"kinds": ["encoder", "decoder", "source"], "tokens": "pieces"}, "weights, and an answer"),
    ],
)
def test_attention_refuses_what_it_cannot_show(
    client: httpx.Client, change: dict[str, object], error: str
) -> None:
    body = {"q": "one two three four five six seven eight"} | change
    answer = client.post("/api/attention", json=body)
    assert answer.status_code == 400
    assert error in answer.json()["error"]


def test_a_parse_is_that_of_python(client: httpx.Client, parser: Parser) -> None:
    sentences = ["one two three", "", "( it )"]
    expected = parser.parse(sentences, n_best=2, beam_size=4)
    body = {"q": sentences, "n_best": 2, "beam_size": 4}
    parses = client.post("/api/parse", json=body).json()["parses"]
    for got, wanted in zip(parses, expected, strict=True):
        assert got["words"] == list(wanted.words)
        assert [one["brackets"] for one in got["outputs"]] == [
            str(one.tree) for one in wanted.outputs
        ]
        for one in got["outputs"]:
            assert brackets(one["tree"]) == one["brackets"]
    alone = client.post("/api/parse", data={"q": "one two three"}).json()["parses"]
    assert len(alone) == 1
    assert len(alone[0]["outputs"]) == 1
    assert client.post("/api/parse", json=body | {"n_best": 5}).status_code == 400
    error = client.post("/api/parse", json={"q": ["one", "one " * 60]}).json()["error"]
    assert "tokens, and the longest may have 40; send shorter ones" in error
    assert "text 2" not in error
    assert "max_source_length" not in error


def test_what_may_be_sent_is_named(client: httpx.Client) -> None:
    kinds = client.post("/api/attention", json={"q": "one", "kinds": ["x"]}).json()["error"]
    assert kinds.endswith("choose from encoder, decoder, source")
    empty = client.post("/translate", content=b"", headers=JSON).json()["error"]
    assert empty == "Invalid request: the body is empty; send a JSON object with q, source, target"


def test_only_what_can_be_had_is_offered(client: httpx.Client, served: list[AnyServed]) -> None:
    with serving([one for one in served if isinstance(one, Served)][:1], ServerSettings()) as other:
        alone = other.get("/openapi.json").json()
    both = client.get("/openapi.json").json()
    assert both["paths"].keys() - alone["paths"].keys() == {"/api/parse"}
    fields = alone["components"]["schemas"]["TranslateRequest"]["properties"]
    assert (fields["source"]["enum"], fields["target"]["enum"]) == (["en", "auto"], ["de"])


def test_a_parser_says_what_it_is_and_what_it_cannot_read(parser: Parser) -> None:
    assert re.fullmatch(
        r"<Parser: \d+ tokens to \d+ symbols, [\d,]+ parameters on cpu>", repr(parser)
    )
    with pytest.raises(
        DataError, match="expected a list of sentences, or one sentence, and got int"
    ):
        parser.parse(5)  # type: ignore[call-overload]
    with pytest.raises(DataError, match="got bytes; decode them first"):
        parser.parse([b"x"])  # type: ignore[list-item]
    with pytest.raises(DataError, match="expected a word, and got None"):
        parser.parse([[None]])  # type: ignore[list-item]


def brackets(node: dict[str, Any]) -> str:
    """A tree of nodes as treebanks write it."""
    if "word" in node:
        return f"({escape(node['label'])} {escape(node['word'])})"
    return f"({node['label']} {' '.join(map(brackets, node['children']))})"


def test_what_a_server_has_no_model_for_is_said(transducer: Transducer, parser: Parser) -> None:
    with serving([Served("en", "de", transducer)], ServerSettings()) as client:
        answer = client.post("/api/parse", json=POST["/api/parse"])
        assert answer.status_code == 404
        assert "no model that parses: start it with --model" in answer.json()["error"]
        assert client.get("/languages").json() == [
            {"code": "en", "name": "English", "targets": ["de"]},
            {"code": "de", "name": "German", "targets": []},
        ]
    with serving([ServedParser(parser)], ServerSettings()) as client:
        assert client.post("/api/parse", json=POST["/api/parse"]).status_code == 200
        assert client.get("/languages").json() == []
        assert client.get("/frontend/settings").json()["language"] is None
        assert client.post("/translate", json=POST["/translate"]).status_code == 400
        assert client.post("/detect", json=POST["/detect"]).json() == []
        for path in ("/api/stream", "/api/nbest", "/api/score", "/api/attention"):
            answer = client.post(path, json=POST[path])
            assert answer.status_code == 404
            assert "no model that translates" in answer.json()["error"]


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
        assert without.json() == {"error": "An API key is needed"}
        assert wrong.json() == {"error": "Invalid API key"}
    else:
        assert (without.status_code, wrong.status_code) == (200, 200)


def test_every_route_is_in_that_table(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]
    assert {*described} <= {*GET, *POST}
    assert {path for path, methods in described.items() if "post" in methods} == {*POST}


def test_a_key_may_stand_in_the_body(locked: httpx.Client) -> None:
    body = {"q": "one", "source": "en", "target": "de"}
    for key, status in ((KEY, 200), ("wrong", 403), (KEY + " ", 403), ("ü", 403)):
        for sent in ({"json": body | {"api_key": key}}, {"data": body | {"api_key": key}}):
            assert locked.post("/translate", **sent).status_code == status  # type: ignore[arg-type]
    assert locked.get("/frontend/settings").json()["keyRequired"] is True


@pytest.mark.parametrize("path", ["/", "/translate", "/nothing", "/static/script.js"])
def test_every_answer_carries_the_usual_headers(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in answer.headers
    assert "server" not in answer.headers
    assert len(answer.headers["x-request-id"]) == 16


def test_other_origins_are_let_in_only_if_set(client: httpx.Client, locked: httpx.Client) -> None:
    asked = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    assert client.options("/translate", headers=asked).status_code == 405
    let_in = locked.options("/translate", headers=asked)
    assert let_in.headers["access-control-allow-origin"] == "https://page.example"
    assert "access-control-allow-credentials" not in let_in.headers
    stranger = asked | {"Origin": "https://other.example"}
    assert (
        "access-control-allow-origin" not in locked.options("/translate", headers=stranger).headers
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:5000", 200), ("[::1]:5000", 200), ("127.0.0.1", 200), ("evil.example", 421)],
)
def test_without_keys_only_local_names_are_answered(
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
def test_a_broken_body_is_refused(
    client: httpx.Client, content: bytes, kind: str, status: int
) -> None:
    answer = client.post("/translate", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert [*answer.json()] == ["error"]


def test_other_paths_and_methods_are_refused_in_json(client: httpx.Client) -> None:
    assert client.get("/nothing").json() == {"error": "Not Found"}
    assert client.get("/static/../app.py").status_code == 404
    wrong = client.get("/translate")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert wrong.json() == {"error": "Method Not Allowed"}


def test_a_failure_is_a_500_that_tells_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Transducer):
        def translate(self, texts: object, **options: object) -> object:  # type: ignore[override]
            raise RuntimeError("secret-words")

    with (
        serving([Served("en", "de", small_transducer(kind=Broken))], ServerSettings()) as client,
        caplog.at_level(logging.INFO),
    ):
        answer = client.post("/translate", json=POST["/translate"])
        assert answer.status_code == 500
        assert answer.json() == {"error": "the server failed; its log says where"}
        assert client.get("/readyz").status_code == 200
    assert "RuntimeError at test_server.py" in caplog.text
    assert "secret" not in caplog.text
