"""Words, choices, beam search and training runs, over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.integration.servers import save_imported, serving, small_transducer
from tests.random_networks import any_output_accepted

import transept
from transept import Transducer, config
from transept.apps.serve import runs
from transept.apps.serve.models import Served, open_model
from transept.apps.serve.runs import open_runs
from transept.apps.serve.settings import ServerSettings
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.errors import ConfigError
from transept.experiment import Experiment
from transept.model.config import ModelConfig
from transept.progress import no_progress
from transept.text.tokenizer import EOS_ID

TEA = "I would like a cup of tea."
PAIR: dict[str, Any] = {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def model() -> Transducer:
    return transept.load("en-de")


@pytest.fixture(scope="module")
def client(model: Transducer) -> Iterator[httpx.Client]:
    with serving([Served("en", "de", model)], ServerSettings(char_limit=3_000)) as client:
        yield client


def post(client: httpx.Client, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


# --- words -----------------------------------------------------------------------------------


def test_words_of_each_sentence_are_returned(client: httpx.Client) -> None:
    text = f"{TEA} It rains!\n\nWhere do you live?"
    whole = post(client, "/translate", q=text, **PAIR)["translatedText"]
    sentences = post(client, "/api/words", q=text, **PAIR)["sentences"]
    assert [one["source"] for one in sentences] == [TEA, "It rains!", "Where do you live?"]
    assert f"{sentences[0]['text']} {sentences[1]['text']}\n\n{sentences[2]['text']}" == whole
    for one in sentences:
        assert [*one] == ["source", "text", "words"]
        for word in one["words"]:
            assert one["text"][word["start"] : word["end"]] == word["text"]
            assert 0 < word["probability"] <= 1
    tea = sentences[0]["words"][-1]
    assert [tea["text"], *(TEA[start:end] for start, end in tea["sources"])] == ["Tee", "tea"]


def test_words_continue_a_prefix(client: httpx.Client) -> None:
    (one,) = post(client, "/api/words", q=TEA, prefix="Ich möchte", **PAIR)["sentences"]
    assert one["text"].startswith("Ich möchte ")
    assert one["words"][1]["text"] == "möchte"
    two = f"{TEA} It rains."
    assert len(post(client, "/api/words", q=two, prefix="Ich", **PAIR)["sentences"]) == 1
    assert len(post(client, "/api/words", q=two, prefix=" ", **PAIR)["sentences"]) == 2
    assert post(client, "/api/words", q="")["sentences"] == []


@pytest.mark.parametrize(
    ("path", "change", "error"),
    [
        ("/api/words", {"q": "x" * 3_001}, "exceeds text limit"),
        ("/api/words", {"q": "a.\n" * 501}, "exceeds sentence limit"),
        ("/api/words", {"prefix": "eins " * 500}, "the prefix has"),
        ("/api/words", {"beam_size": 4}, "unknown field"),
        ("/api/choices", {"q": ""}, "the source has no words"),
        ("/api/choices", {"q": "one " * 400}, "too long for the model; send a shorter one"),
        ("/api/choices", {"prefix": "eins " * 500}, "the prefix has"),
        ("/api/choices", {"n": 0}, ">= 1"),
        ("/api/choices", {"n": 21}, "<= 20"),
        ("/api/beam", {"q": " "}, "the source has no words"),
        ("/api/beam", {"q": "one " * 400}, "too long for the model; send a shorter one"),
        ("/api/beam", {"beam_size": 1}, "at least 2"),
        ("/api/beam", {"beam_size": 22}, "at most 21"),
        ("/api/beam", {"q": "one " * 200, "beam_size": 21}, "more than 5,000"),
    ],
)
def test_invalid_requests_are_rejected(
    client: httpx.Client, path: str, change: dict[str, Any], error: str
) -> None:
    assert error in post(client, path, 400, **({"q": TEA} | change))["error"]


def test_target_language_is_passed_to_the_model(tmp_path: Path) -> None:
    imported = save_imported(tmp_path, ("fr", "nl"), source_language="en")
    served = open_model(str(imported), None, None, "cpu")
    body: dict[str, Any] = {"q": "one two three", "source": "en"}
    with any_output_accepted(), serving(served, ServerSettings()) as client:
        for path in ("/api/words", "/api/choices", "/api/beam"):
            found = [post(client, path, target=target, **body) for target in ("fr", "nl")]
            assert found[0] != found[1]


# --- choices and the beam --------------------------------------------------------------------


def test_choices_are_the_most_likely_next_words(client: httpx.Client) -> None:
    choices = post(client, "/api/choices", q=TEA, prefix="Ich ", n=3, **PAIR)["choices"]
    assert [one["text"] for one in choices] == ["hätte", "würde", "möchte"]
    assert 1 > choices[0]["probability"] > choices[1]["probability"] > 0
    assert len(post(client, "/api/choices", q=TEA)["choices"]) == 5


@pytest.mark.parametrize("beam_size", [None, 2, 6])
def test_winner_of_the_beam_is_the_output_of_the_search(
    client: httpx.Client, model: Transducer, beam_size: int | None
) -> None:
    record = post(client, "/api/beam", q=TEA, beam_size=beam_size, **PAIR)
    assert [*record] == ["steps", "winner", "reason"]
    hypotheses = {one["id"]: one for step in record["steps"] for one in step["hypotheses"]}
    winner = hypotheses[record["winner"]]
    (unit,) = model.units([TEA])[0]
    source = model.source_tokenizer.framed(unit.ids)
    search = SearchConfig(beam_size=beam_size or 4)
    one = Input(source, search.max_length(len(source)))
    ((output,),) = model.native.search([one], search, no_progress)
    tokens, at = list[str](), winner
    while at:
        tokens.append(at["token"])
        at = hypotheses.get(at["parent"])
    expected = model.target_tokenizer.pieces_of([*output.ids, EOS_ID])
    assert tokens[::-1] == expected
    assert winner["score"] == pytest.approx(output.log_probability, abs=1e-4)
    assert winner["normalized"] == pytest.approx(output.score, abs=1e-4)
    assert winner["state"] == "finished"
    assert len(record["steps"][0]["hypotheses"]) == 2 * search.beam_size


# --- training runs ---------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "recipe" / "run"
    directory.mkdir(parents=True)
    model = ModelConfig(vocab_size=300, n_layers=2, d_model=16, d_ff=32, n_heads=2)
    (directory / "config.toml").write_text(config.dump(Experiment(model=model)))
    return directory


def step(number: int) -> bytes:
    return b'{"kind": "step", "step": %d}\n' % number


def test_lines_of_a_run_are_followed(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    served = [Served("en", "de", small_transducer())]
    given = [tmp_path / "recipe", other, run]
    with serving(served, ServerSettings(), runs=given) as client:
        summary = "2 layers, d_model 16, d_ff 32, 2 heads, vocabulary 300, dropout 0.1"
        assert client.get("/api/runs").json() == [
            {"name": "recipe", "config": summary},
            {"name": "other", "config": ""},
            {"name": "recipe-2", "config": summary},
        ]
        path, log = "/api/runs/recipe/metrics", run / "metrics.jsonl"
        assert client.get(path).json() == {"from": 0, "next": 0, "lines": []}
        log.write_bytes(step(1) + step(2) + b'{"kind": "st')
        first = client.get(path).json()
        assert (first["next"], [one["step"] for one in first["lines"]]) == (2, [1, 2])
        log.write_bytes(step(1) + step(2) + step(3) + b"damaged\n" + step(4))
        assert client.get(path, params={"from": 2}).json() == {
            "from": 2, "next": 5,
            "lines": [json.loads(step(3)), {}, json.loads(step(4))],
        }  # fmt: skip
        assert client.get(path, params={"from": 5}).json() == {"from": 5, "next": 5, "lines": []}
        log.write_bytes(step(1))  # the run resumed from an earlier checkpoint
        again = {"from": 0, "next": 1, "lines": [json.loads(step(1))]}
        assert client.get(path, params={"from": 5}).json() == again
        for wrong in ("-1", "x", "1" * 20, ""):
            assert client.get(path, params={"from": wrong}).status_code == 400
        for name in ("nothing", "..", "%2e%2e", "recipe%2f..%2fother"):
            assert client.get(f"/api/runs/{name}/metrics").status_code == 404
        described = client.get("/openapi.json").json()["paths"]["/api/runs/{name}/metrics"]["get"]
        assert [one["name"] for one in described["parameters"]] == ["name", "from"]


def test_answer_of_a_run_is_bounded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_LINES", 4)
    monkeypatch.setattr(runs, "MOST_BYTES", 100)
    long = b'{"kind": "quality", "text": "%b"}\n' % (b"x" * 200)
    (run / "metrics.jsonl").write_bytes(b"".join(map(step, range(9))) + long * 2)
    (followed,) = open_runs([run]).values()
    seen, first = list[int](), 0
    while (found := followed.lines(first)).lines:
        seen.append(len(found.lines))
        assert found.next == first + len(found.lines)
        first = found.next
    assert seen == [3, 3, 3, 1, 1]


def test_run_must_be_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run: .*nothing: is not a directory"):
        open_runs([tmp_path / "nothing"])
