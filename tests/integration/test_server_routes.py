"""Several models in one server: language pairs, target languages of one model, and the pivot."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import Held, save_imported, serving, small_transducer
from tests.integration.test_server import events
from tests.integration.test_server_load import connected, figure, wait_until, waiting
from tests.integration.workshop import run
from tests.random_networks import any_output_accepted

import transept
from transept import Transducer
from transept.apps.serve.models import AnyServed, Served, ServedModels, describe, open_model
from transept.apps.serve.settings import ServerSettings
from transept.errors import ConfigError

TEXT = "one two three. The end is near!\n\n  So be it."
MARKED = "<p>one <b>two</b> three.</p>\n<p>The end &amp; so be it.</p>"
ORIGIN = {"imported_from": "opus-mt-en-xx", "format": "Marian", "licence": "CC-BY-4.0"}


@pytest.fixture(autouse=True, scope="module")
def random_networks() -> Iterator[None]:
    with any_output_accepted():
        yield


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported model from English to French and Dutch."""
    directory = tmp_path_factory.mktemp("imported")
    return save_imported(directory, ("fr", "nl"), source_language="en", **ORIGIN)


@pytest.fixture(scope="module")
def model(multilingual: Path) -> Transducer:
    return transept.load(multilingual)


@pytest.fixture(scope="module")
def served(multilingual: Path) -> list[AnyServed]:
    return [Served("de", "en", small_transducer(2)), *open_model(str(multilingual), *NONE, "cpu")]


NONE = (None, None)


@pytest.fixture(scope="module")
def client(served: list[AnyServed]) -> Iterator[httpx.Client]:
    with serving(served, ServerSettings(), pivot="en") as client:
        yield client


@pytest.fixture(scope="module")
def direct(served: list[AnyServed]) -> Iterator[httpx.Client]:
    """A server with the same models and without a pivot."""
    with serving(served, ServerSettings()) as client:
        yield client


def translated(client: httpx.Client, q: Any, source: str, target: str, **more: Any) -> Any:
    body = {"q": q, "source": source, "target": target, **more}
    answer = client.post("/translate", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["translatedText"]


def streamed(client: httpx.Client, q: str, source: str, target: str, **more: Any) -> str:
    body = {"q": q, "source": source, "target": target, **more}
    with client.stream("POST", "/api/stream", json=body) as answer:
        *_, (name, done) = events(answer)
    assert name == "done"
    return str(done["text"])


# --- target languages of one model -----------------------------------------------------------


@pytest.mark.parametrize("target", ["fr", "nl"])
def test_target_language_is_passed_to_the_model(
    client: httpx.Client, model: Transducer, target: str
) -> None:
    options: Any = {"target_language": target, "source_language": "en"}
    expected = model.translate(TEXT, **options).text
    assert (
        translated(client, TEXT, "en", target) == streamed(client, TEXT, "en", target) == expected
    )
    pair = {"q": "one two", "source": "en", "target": target}
    best = client.post("/api/nbest", json=pair).json()["outputs"][0]
    assert best["text"] == model.translate("one two", target_language=target).text
    (score,) = client.post("/api/score", json=pair | {"translation": "the end"}).json()["scores"]
    tagged = model.score(f">>{target}<<one two", "the end").log_probability
    assert score["source"] == "one two"
    assert score["log_probability"] == pytest.approx(tagged, abs=1e-4)
    seen = client.post("/api/attention", json=pair).json()
    assert seen["target"] == best["text"]


def test_target_languages_of_one_model_differ(client: httpx.Client) -> None:
    french, dutch = (translated(client, TEXT, "en", target) for target in ("fr", "nl"))
    assert french != dutch


def test_markup_moves_with_its_words_to_every_target(client: httpx.Client) -> None:
    answer = translated(client, MARKED, "en", "fr", format="html")
    assert [answer.count(tag) for tag in ("<p>", "<b>", "</b>", "</p>\n<p>", ">>")] == [
        2,
        1,
        1,
        1,
        0,
    ]
    assert streamed(client, MARKED, "en", "fr", format="html") == answer


def test_sentences_for_several_target_languages_share_a_batch(multilingual: Path) -> None:
    loaded = transept.load(multilingual)
    held = Held(loaded.networks.models, loaded.source_tokenizer, loaded.target_tokenizer)
    pairs = [Served("en", tag, held, tag=tag) for tag in ("fr", "nl")]
    with serving(pairs, ServerSettings(batch_seconds=60)) as client, ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(translated, client, "one", "en", "fr")]
        wait_until(lambda: held.begun)  # the others arrive while this one is held
        asked += [pool.submit(translated, client, "two", "en", tag) for tag in ("fr", "nl")]
        wait_until(lambda: waiting(client) == 2)
        held.let.set()
        found = [one.result() for one in asked]
    assert held.begun == [1, 2]
    expected = [("one", "fr"), ("two", "fr"), ("two", "nl")]
    assert found == [loaded.translate(q, target_language=tag).text for q, tag in expected]


def test_languages_of_a_model_come_from_the_command_line_then_from_its_files(
    multilingual: Path, tmp_path: Path
) -> None:
    path = str(multilingual)
    given = {
        path: "en-fr en-nl", f"en-nl={path}": "en-nl", f"da={path}": "da-fr da-nl"
    }  # fmt: skip
    for name, pairs in given.items():
        assert " ".join(map(str, open_model(name, *NONE, "cpu"))) == pairs
    assert [*map(str, open_model(path, "da", "fr", "cpu"))] == ["da-fr"]
    with pytest.raises(ConfigError, match=r"target_language: is 'de'; this model has fr, nl"):
        open_model(f"en-de={path}", *NONE, "cpu")
    single = save_imported(tmp_path, source_language="pt_br", target_language="en", licence="MIT")
    (one,) = open_model(str(single), *NONE, "cpu")
    assert isinstance(one, Served)
    assert (str(one), one.tag, one.origin) == ("pt_br-en", None, {"licence": "MIT"})


def test_model_without_source_language_is_rejected(tmp_path: Path) -> None:
    nameless = save_imported(tmp_path, ("fr", "nl"))
    with pytest.raises(ConfigError, match=r"give them, such as `model` en=.*model for English$"):
        open_model(str(nameless), *NONE, "cpu")


def test_model_for_one_pair_takes_precedence_over_one_with_several_targets(
    served: list[AnyServed],
) -> None:
    french = Served("en", "fr", small_transducer())
    models = ServedModels([*served, french])
    assert models.legs("en", "fr") == (french,)
    assert [len(pairs) for pairs in models.by_model()] == [1, 1, 1]
    with pytest.raises(ConfigError, match="two models translate en-nl: leave one out"):
        ServedModels([*served, Served("en", "nl", small_transducer(), tag="nl")])


def test_reload_loads_a_model_with_several_targets_once(multilingual: Path) -> None:
    models = ServedModels(open_model(str(multilingual), *NONE, "cpu"))
    (before,) = {one.transducer for one in models}
    models.reload()
    (after,) = {one.transducer for one in models}
    assert after is not before


# --- the pivot -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "html"])
@pytest.mark.parametrize("text", [TEXT, MARKED, "  one\n\ttwo 🙂 \n", ""])
def test_translation_through_the_pivot_equals_two_translations(
    client: httpx.Client, text: str, form: str
) -> None:
    english = translated(client, text, "de", "en", format=form)
    expected = translated(client, english, "en", "nl", format=form)
    assert translated(client, text, "de", "nl", format=form) == expected
    assert translated(client, [text, "two"], "de", "nl", format=form)[0] == expected
    assert streamed(client, text, "de", "nl", format=form) == expected


def test_bundled_models_are_joined_by_the_pivot() -> None:
    pairs = [one for name in ("de-en", "en-nl=en-de") for one in open_model(name, *NONE, "cpu")]
    text = "Guten Morgen!  Ich hätte gerne eine Tasse Tee.\n\nWie alt bist du?"
    marked = "<ul><li>Das ist <b>mein</b> Haus.</li>\n<li>Wie alt bist du?</li></ul>"
    with serving(pairs, ServerSettings(), pivot="en") as client:
        there = translated(client, text, "de", "nl")
        assert there == translated(client, translated(client, text, "de", "en"), "en", "nl")
        assert there.partition("!  ")[1] == "!  "
        assert there.endswith("\n\nWie alt bist du?")
        items = translated(client, marked, "auto", "nl", format="html")
        assert items.startswith("<ul><li>")
        assert items.endswith("</li>\n<li>Wie alt bist du?</li></ul>")
        assert items.count("<b>") == items.count("</b>") == 1


def test_alternatives_through_the_pivot_are_those_of_the_second_model(client: httpx.Client) -> None:
    english = translated(client, "three", "de", "en")
    body = {"target": "fr", "alternatives": 3}
    there = client.post("/translate", json=body | {"q": "three", "source": "de"}).json()
    assert there == client.post("/translate", json=body | {"q": english, "source": "en"}).json()
    assert there["alternatives"]


@pytest.mark.parametrize(
    "path",
    ["/api/nbest", "/api/score", "/api/attention", "/api/words", "/api/choices", "/api/beam"],
)
def test_scores_and_attention_through_the_pivot_are_rejected(
    client: httpx.Client, path: str
) -> None:
    body = {"q": "one", "source": "de", "target": "fr"}
    body |= {"translation": "two"} if path == "/api/score" else {}
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()) == (400, {
        "error": "de-fr is translated through en, so it has no scores and no attention; "
        "request de-en and en-fr separately"
    })  # fmt: skip


@pytest.mark.parametrize("path", ["/translate", "/api/stream"])
def test_terms_through_the_pivot_are_rejected(client: httpx.Client, path: str) -> None:
    body = {"q": "one", "source": "de", "target": "fr", "keep": ["one"]}
    answer = client.post(path, json=body)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "de-fr is translated through en, which excludes a glossary"},
    )


def test_languages_list_the_pairs_through_the_pivot(
    client: httpx.Client, direct: httpx.Client
) -> None:
    assert direct.get("/languages").json() == [
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": ["fr", "nl"]},
        {"code": "fr", "name": "French", "targets": []},
        {"code": "nl", "name": "Dutch", "targets": []},
    ]
    targets = {one["code"]: one["targets"] for one in client.get("/languages").json()}
    assert targets == {"de": ["en", "fr", "nl"], "en": ["fr", "nl"], "fr": [], "nl": []}


def test_missing_pair_lists_the_pairs_and_a_possible_pivot(
    client: httpx.Client, direct: httpx.Client
) -> None:
    body = {"q": "one", "source": "de", "target": "nl"}
    missing = "{} is not available as a target language from {}. This server translates {}"
    error = missing.format("Dutch (nl)", "German (de)", "de-en, en-fr, en-nl")
    error += ". The server option --pivot en would translate through English"
    for path in ("/translate", "/api/stream", "/api/nbest"):
        answer = direct.post(path, json=body)
        assert (answer.status_code, answer.json()) == (400, {"error": error})
    answer = client.post("/translate", json=body | {"source": "nl", "target": "de"})
    pairs = "de-en, de-fr, de-nl, en-fr, en-nl"
    assert answer.json() == {"error": missing.format("German (de)", "Dutch (nl)", pairs)}


def test_detection_includes_languages_that_reach_the_target_through_the_pivot(
    client: httpx.Client, direct: httpx.Client
) -> None:
    body = {"q": "das ist nicht der Tag", "source": "auto", "target": "fr"}
    for server, language in ((client, "de"), (direct, "en")):
        found = server.post("/translate", json=body).json()["detectedLanguage"]
        assert found["language"] == language


def test_unusable_pivot_is_rejected(
    served: list[AnyServed], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigError, match="pivot: no model translates to 'fr', or none from it"):
        ServedModels(served, pivot="fr")
    assert run("serve", "--pivot", "fr", "--port", "0") == 2  # from French they only lead back
    assert "--pivot: no model translates to 'fr'" in capsys.readouterr().err


@pytest.fixture
def two() -> tuple[Held, Held]:
    first, second = (small_transducer(seed, kind=Held) for seed in (1, 2))
    assert isinstance(first, Held)
    assert isinstance(second, Held)
    first.let.set()
    return first, second


def joined(first: Held, second: Held) -> list[Served]:
    return [Served("de", "en", first), Served("en", "fr", second)]


def test_both_models_of_a_pivot_use_the_queue(two: tuple[Held, Held]) -> None:
    settings = ServerSettings(batch_sentences=1, sentence_limit=20, queue_limit=20, gather_ms=0)
    with serving(joined(*two), settings, pivot="en") as client, ThreadPoolExecutor(2) as pool:
        there = pool.submit(translated, client, "one\ntwo", "de", "fr")
        wait_until(lambda: two[1].begun)
        n_queued = int(waiting(client))  # the second model splits long sentences
        more = pool.submit(translated, client, "three\n" * (20 - n_queued), "en", "fr")
        wait_until(lambda: waiting(client) == 20)
        refused = client.post("/translate", json={"q": "one", "source": "de", "target": "fr"})
        assert refused.status_code == 429
        two[1].let.set()
        assert there.result().count("\n") == 1
        assert more.result()
        wait_until(lambda: figure(client, "transept_batch_sentences_sum") == 2 + 1 + 20)
    assert [sum(held.begun) for held in two] == [2, 1 + 20]


def test_client_that_disconnects_during_the_second_model_is_not_decoded_for(
    two: tuple[Held, Held],
) -> None:
    settings = ServerSettings(batch_sentences=1, gather_ms=0)
    body = json.dumps({"q": "one\ntwo\nthree", "source": "de", "target": "fr"}).encode()
    with serving(joined(*two), settings, pivot="en") as client:
        with connected(client, b"/translate", body):
            wait_until(lambda: two[1].begun)
        wait_until(lambda: waiting(client) == 0)
        two[1].let.set()
        wait_until(lambda: 'status="499"' in client.get("/metrics").text)
    assert [sum(held.begun) for held in two] == [3, 1]


def test_deadline_includes_both_models_of_a_pivot(two: tuple[Held, Held]) -> None:
    body = {"q": "one\ntwo", "source": "de", "target": "fr"}
    with serving(joined(*two), ServerSettings(deadline=0.5, gather_ms=0), pivot="en") as client:
        late = client.post("/translate", json=body)
        assert (late.status_code, waiting(client)) == (503, 0)
        assert "longer than 0.5 s" in late.json()["error"]
        two[1].let.set()


# --- descriptions ----------------------------------------------------------------------------


def test_origin_of_an_imported_model_is_listed(
    client: httpx.Client, served: list[AnyServed]
) -> None:
    assert client.get("/api/models").json() == [
        {"source": "de", "targets": ["en"], "engine": "native"},
        {"source": "en", "targets": ["fr", "nl"], "engine": "native", **ORIGIN},
    ]
    _, pairs = ServedModels(served).by_model()
    assert describe(pairs) == (
        "English to French, Dutch (engine: native; imported from: opus-mt-en-xx; format: Marian; "
        "licence: CC-BY-4.0)"
    )
    many = [Served("en", f"x{letter}", small_transducer()) for letter in "abcde"]
    assert describe(many) == "English to 5 languages (engine: native)"


def test_info_prints_the_origin_of_an_imported_model(
    multilingual: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("info", multilingual) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["imported from opus-mt-en-xx", "format Marian", "licence CC-BY-4.0"]
    assert "source_language en" in lines
    assert run("info", multilingual, "--json") == 0
    assert json.loads(capsys.readouterr().out)["made by"]["licence"] == "CC-BY-4.0"
