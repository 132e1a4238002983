"""Responses of the server. Rejected requests are in test_server_refusals.py."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_type_hints

import httpx
import pytest
from tests.integration.servers import (
    JSON,
    POST,
    every_kind,
    serving,
    small_parser,
    small_transducer,
)
from tests.random_networks import any_output_accepted

from transept import Parser, Transducer
from transept.apps.serve.messages import SearchOptions
from transept.apps.serve.models import AnyServed, Served, ServedParser
from transept.apps.serve.settings import ServerSettings
from transept.decoding.config import SearchConfig
from transept.errors import DataError
from transept.text.trees import escape

TEXT = "one two three. The end is near! So be it."


@pytest.fixture(autouse=True, scope="module")
def random_networks() -> Iterator[None]:
    with any_output_accepted():
        yield


@pytest.fixture(scope="module")
def transducer() -> Transducer:
    return small_transducer(3)  # its outputs are letters, so that each token is visible


@pytest.fixture(scope="module")
def parser() -> Parser:
    return small_parser()


@pytest.fixture(scope="module")
def served(transducer: Transducer, parser: Parser) -> list[AnyServed]:
    return every_kind(transducer, parser)


@pytest.fixture(scope="module")
def client(served: list[AnyServed]) -> Iterator[httpx.Client]:
    settings = ServerSettings(sentence_limit=50, char_limit=2_000, weight_limit=5_000)
    with serving(served, settings) as client:
        yield client


# --- LibreTranslate's API --------------------------------------------------------------------


def test_translation_equals_that_of_python(client: httpx.Client, transducer: Transducer) -> None:
    expected = transducer.translate(TEXT, source_language="en").text
    body = {"q": TEXT, "source": "en", "target": "de", "format": "text", "api_key": ""}
    boundary = {"files": {name: (None, value) for name, value in body.items()}}
    for sent in ({"json": body}, {"data": body}, {"params": body}, boundary):
        answer = client.post("/translate", **sent)
        assert answer.status_code == 200
        assert answer.json() == {"translatedText": expected}


def test_list_of_texts_returns_lists(client: httpx.Client, transducer: Transducer) -> None:
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


def test_null_and_numeric_strings_are_accepted_as_in_libretranslate(client: httpx.Client) -> None:
    body = {"q": "one two", "source": "en", "target": "de"}
    expected = client.post("/translate", json=body | {"alternatives": 2}).json()
    given = {"format": None, "alternatives": "2", "api_key": None}
    assert client.post("/translate", json=body | given).json() == expected
    none = client.post("/translate", json=body | {"alternatives": None}).json()
    assert none == {"translatedText": expected["translatedText"]}
    assert client.post("/translate", json=body | {"alternatives": "many"}).status_code == 400


def test_detected_language_is_returned(client: httpx.Client) -> None:
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


def test_each_text_of_a_list_has_its_own_language(client: httpx.Client) -> None:
    english, german = "the end is near so be it", "das ist nicht der Tag"
    alone = {
        text: client.post("/translate", json={"q": text, "source": "auto", "target": "de"}).json()
        for text in (english, german)
    }
    assert alone[english]["detectedLanguage"]["language"] == "en"
    for texts in ([english, german], [german, english]):
        body = {"q": texts, "source": "auto", "target": "de", "alternatives": 1}
        answer = client.post("/translate", json=body).json()
        for field in ("translatedText", "detectedLanguage"):
            assert answer[field] == [alone[text][field] for text in texts]
        assert [len(others) for others in answer["alternatives"]] == [
            int(text is english) for text in texts
        ]


def test_unclear_text_gets_the_language_of_the_others(client: httpx.Client) -> None:
    body = {"q": ["Name", "the end is near so be it"], "source": "auto", "target": "de"}
    assert _languages(client, body | {"q": "Name"}) == ["de"]
    assert _languages(client, body) == ["en", "en"]


def test_markup_is_ignored_by_language_detection(client: httpx.Client) -> None:
    script = "<script>" + "if (name) { return the.name.of(the.value); }" * 35 + "</script>"
    text = f"{script}<p>Das ist nicht der Tag.</p>"
    body = {"q": text, "source": "auto", "target": "en", "format": "html"}
    assert _languages(client, body | {"format": "text"}) == ["en"]
    assert _languages(client, body) == ["de"]


def _languages(client: httpx.Client, body: Mapping[str, object]) -> list[str]:
    found = client.post("/translate", json=body).json()["detectedLanguage"]
    return [one["language"] for one in (found if isinstance(found, list) else [found])]


def test_tags_stay_in_place(client: httpx.Client) -> None:
    text = '<p class="x">one <b>two</b> &lt;three&gt;</p>\n<br/><p>The end.</p>'
    body = {"q": text, "source": "en", "target": "de", "format": "html"}
    answer = client.post("/translate", json=body).json()["translatedText"]
    for before, after in zip(text.split("<")[1:], answer.split("<")[1:], strict=True):
        assert before.partition(">")[0] == after.partition(">")[0]


def test_markdown_is_translated_as_in_python(client: httpx.Client, transducer: Transducer) -> None:
    text = "# One two\n\n- three\n\n```\nfour\n```\n"
    body = {"q": text, "source": "en", "target": "de", "format": "markdown"}
    answer = client.post("/translate", json=body).json()["translatedText"]
    assert answer == transducer.translate(text, format="markdown").text
    assert answer.startswith("# ")
    assert answer.endswith("\n\n```\nfour\n```\n")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": "zz"}, "zz is not supported"),
        ({"source": "auto", "target": "auto"}, "auto is not supported"),
        (
            {"format": "pdf"},
            "Invalid request: Invalid enum value 'pdf' - at `$.format`; choose from text, html, "
            "markdown",
        ),
        ({"alternatives": -1}, "Invalid request: Expected `int` >= 0 - at `$.alternatives`"),
        (
            {"q": "x" * 2_001},
            "Invalid request: request (2001) exceeds text limit (2000); send fewer "
            "characters at a time",
        ),
        (
            {"q": [""] * 101},
            "Invalid request: request (101) exceeds sentence limit (50); send fewer at a time",
        ),
        (
            {"q": "a.\n" * 51},
            "Invalid request: request (51) exceeds sentence limit (50); send fewer at a time",
        ),
    ],
)
def test_invalid_requests_are_rejected(
    client: httpx.Client, change: dict[str, object], error: str
) -> None:
    body = {"q": "one", "source": "en", "target": "de"} | change
    body = {name: value for name, value in body.items() if value is not None}
    answer = client.post("/translate", json=body)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_languages_and_settings_are_listed(client: httpx.Client) -> None:
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


def test_n_best_equals_that_of_python(client: httpx.Client, transducer: Transducer) -> None:
    expected = transducer.translate(TEXT, beam_size=6, n_best=3, length_penalty=0.2)
    body = {"q": TEXT, "n_best": 3, "beam_size": 6, "length_penalty": 0.2}
    answer = client.post("/api/nbest", json=body).json()
    assert (answer["source"], answer["target"]) == ("en", "de")
    assert [one["text"] for one in answer["outputs"]] == [one.text for one in expected.outputs]
    scores = [one["score"] for one in answer["outputs"]]
    assert scores == pytest.approx([one.score for one in expected.outputs], abs=1e-4)


@pytest.mark.parametrize(
    "change", [{"n_best": 5, "beam_size": 4}, {"n_best": 22}, {"n_best": 0}, {"beem_size": 3},
               {"length_penalty": -1}, {"length_penalty": 1e300}, {"beam_size": 22},
               {"source": "de", "target": "de"}, {"source": "zz"}]
)  # fmt: skip
def test_n_best_rejects_invalid_options(client: httpx.Client, change: dict[str, object]) -> None:
    answer = client.post("/api/nbest", json={"q": "one"} | change)
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_search_options_of_requests_are_fields_of_the_search_config(client: httpx.Client) -> None:
    hints = get_type_hints(SearchConfig)
    options = get_type_hints(SearchOptions)
    assert options == {name: hints[name] | None for name in options}
    wide = client.post("/api/nbest", json={"q": "one", "n_best": 5, "beam_size": 4}).json()
    assert wide["error"] == "Invalid request: n_best: 5 must not be more than the beam size, 4"
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("NBestRequest", "StreamRequest", "BeamRequest", "ParseRequest"):
        field = schemas[name]["properties"]["beam_size"]
        assert field["description"] == "Number of live hypotheses; 1 is greedy search."
        assert field["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 21}


def test_score_equals_that_of_python(client: httpx.Client, transducer: Transducer) -> None:
    answer = client.post("/api/score", json={"q": ["one", "two"], "translation": ["the", "end"]})
    expected = transducer.score(["one", "two"], ["the", "end"])
    for got, wanted in zip(answer.json()["scores"], expected, strict=True):
        assert got["log_probability"] == pytest.approx(wanted.log_probability, abs=1e-4)
        assert got["tokens"] == list(wanted.tokens)
    uneven = client.post("/api/score", json={"q": ["one"], "translation": ["the", "end"]})
    assert uneven.json() == {"error": "Invalid request: each q needs one translation"}
    long = client.post("/api/score", json={"q": ["one", "one " * 200], "translation": ["a", "b"]})
    assert long.status_code == 400
    assert "the model reads at most 40" in long.json()["error"]


def events(answer: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    """The names and contents of the events of a stream."""
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
    assert len(parts) > 2, "it comes in parts, fewer where the machine is busy"
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
        assert (name, done) == ("done", {"text": text, "sentences": 0})


def test_stream_returns_the_number_of_sentences(client: httpx.Client) -> None:
    for text, n_sentences in (("one two", 1), ("One two. Three.", 2), ("one\n\ntwo", 2)):
        with client.stream("POST", "/api/stream", json={"q": text}) as answer:
            *_, (_, done) = events(answer)
        assert done["sentences"] == n_sentences


# --- terms -----------------------------------------------------------------------------------

TOO_LONG = "ж" * 60
"""A term with more tokens than the output of a short text may have."""


@pytest.mark.parametrize("form", ["text", "html"])
def test_terms_are_in_translation_and_in_stream(client: httpx.Client, form: str) -> None:
    terms: dict[str, object] = {"glossary": {"two": "end"}, "keep": ["near"]}
    body = terms | {"q": "One <b>two</b> near", "source": "en", "target": "de", "format": form}
    answer = client.post("/translate", json=body).json()
    assert {*answer} == {"translatedText"}
    with client.stream("POST", "/api/stream", json=body) as stream:
        *_, (_, done) = events(stream)
    assert done == {"text": answer["translatedText"], "sentences": 1}
    for word in ("end", "near"):
        assert re.search(rf"(?<!\w)(?:{word}|{word.title()})(?!\w)", answer["translatedText"])


def test_missing_terms_are_returned(client: httpx.Client) -> None:
    body = {"q": "one two", "source": "en", "target": "de", "glossary": {"two": TOO_LONG}}
    assert client.post("/translate", json=body).json()["missingTerms"] == [TOO_LONG]
    several = client.post("/translate", json=body | {"q": ["one", "two"]}).json()
    assert several["missingTerms"] == [[], [TOO_LONG]]
    with client.stream("POST", "/api/stream", json=body) as stream:
        *_, (_, done) = events(stream)
    assert done["missingTerms"] == [TOO_LONG]


@pytest.mark.parametrize(
    "change",
    [
        {"glossary": {f"w{n}": "x" for n in range(201)}},
        {"glossary": {"two": "x" * 101}},
        {"glossary": {"x" * 101: "two"}},
        {"glossary": {"two": ""}},
        {"glossary": {"two": " "}},
        {"glossary": {"two": 2}},
        {"glossary": {"two": "x"}, "keep": ["two"]},
        {"keep": ["x"] * 201},
        {"keep": "two"},
    ],
)
def test_invalid_terms_are_rejected(client: httpx.Client, change: dict[str, object]) -> None:
    body = {"q": "one", "source": "en", "target": "de"} | change
    for path in ("/translate", "/api/stream"):
        answer = client.post(path, json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]


def test_openapi_describes_terms(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    for name in ("TranslateRequest", "StreamRequest"):
        fields = schemas[name]["properties"]
        assert fields["glossary"]["maxProperties"] == fields["keep"]["maxItems"] == 200
        assert fields["keep"]["items"] == {"type": "string", "minLength": 1, "maxLength": 100}
    assert "missingTerms" in schemas["TranslateAnswer"]["properties"]


@pytest.mark.parametrize("tokens", ["words", "pieces"])
def test_attention_equals_that_of_python(
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
        ({"layers": [3]}, "layers: the model has 2, so 3 is out of range"),
        ({"heads": [1, 9]}, "heads: the model has 2, so 9 is out of range"),
        ({"kinds": []}, "Expected `array` of length >= 1"),
        ({"q": " "}, "the source has no words"),
        ({"q": "one " * 60}, "the model reads at most 40"),
        ({"translation": "one " * 60}, "the model reads at most 40"),
        ({"kinds": ["encoder", "decoder", "source"], "tokens": "pieces"}, "exceed the limit"),
    ],
)
def test_attention_rejects_invalid_requests(
    client: httpx.Client, change: dict[str, object], error: str
) -> None:
    body = {"q": "one two three four five six seven eight"} | change
    answer = client.post("/api/attention", json=body)
    assert answer.status_code == 400
    assert error in answer.json()["error"]


def test_parse_equals_that_of_python(client: httpx.Client, parser: Parser) -> None:
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
    assert "tokens, and the maximum is 40; send shorter ones" in error
    assert "text 2" not in error
    assert "max_source_length" not in error


def test_errors_list_the_valid_values(client: httpx.Client) -> None:
    kinds = client.post("/api/attention", json={"q": "one", "kinds": ["x"]}).json()["error"]
    assert kinds.endswith("choose from encoder, decoder, source")
    empty = client.post("/translate", content=b"", headers=JSON).json()["error"]
    assert empty == "Invalid request: the body is empty; send a JSON object with q, source, target"


def test_openapi_lists_only_available_paths_and_languages(
    client: httpx.Client, served: list[AnyServed]
) -> None:
    with serving([one for one in served if isinstance(one, Served)][:1], ServerSettings()) as other:
        alone = other.get("/openapi.json").json()
    both = client.get("/openapi.json").json()
    assert both["paths"].keys() - alone["paths"].keys() == {"/api/parse"}
    fields = alone["components"]["schemas"]["TranslateRequest"]["properties"]
    assert (fields["source"]["enum"], fields["target"]["enum"]) == (["en", "auto"], ["de"])


def test_parser_rejects_invalid_sentences(parser: Parser) -> None:
    assert re.fullmatch(
        r"<Parser: \d+ tokens to \d+ symbols, [\d,]+ parameters on cpu>", repr(parser)
    )
    with pytest.raises(DataError, match="expected a sentence or a list of sentences, got int"):
        parser.parse(5)  # type: ignore[call-overload]
    with pytest.raises(DataError, match="or a list of sentences, got dict"):
        parser.parse({"first": "the cat"})  # type: ignore[call-overload]
    with pytest.raises(DataError, match="got bytes; decode them first"):
        parser.parse([b"x"])  # type: ignore[list-item]
    with pytest.raises(DataError, match="expected a word, got None"):
        parser.parse([[None]])  # type: ignore[list-item]


def brackets(node: dict[str, Any]) -> str:
    """A tree of nodes in bracket notation."""
    if "word" in node:
        return f"({escape(node['label'])} {escape(node['word'])})"
    return f"({node['label']} {' '.join(map(brackets, node['children']))})"


def test_requests_without_a_model_are_rejected(transducer: Transducer, parser: Parser) -> None:
    with serving([Served("en", "de", transducer)], ServerSettings()) as client:
        answer = client.post("/api/parse", json=POST["/api/parse"])
        assert answer.status_code == 404
        assert answer.json() == {"error": "this server has no model that parses"}
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
        inside = "/api/words", "/api/choices", "/api/beam"
        for path in ("/api/stream", "/api/nbest", "/api/score", "/api/attention", *inside):
            answer = client.post(path, json=POST[path])
            assert answer.status_code == 404
            assert "no model that translates" in answer.json()["error"]
