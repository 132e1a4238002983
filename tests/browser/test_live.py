"""The Transformer of docs/live in Chromium: its results are those of the package. Chapter 0."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import torch
from making.live import panels, write_live
from making.recorded import SENTENCE, record
from playwright.sync_api import Browser, Page, expect
from tests.integration.servers import PATIENCE

from transept import load
from transept.api.transducer import Transducer
from transept.apps.recipes.sentences import built_in
from transept.text.spans import MASKS
from transept.text.tokenizer import EOS_ID, PAD_ID

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = [
    "I would like a cup of tea.",
    "The bank refused the loan.",
    "She gave her brother the letter that she had found.",
    "Where did you buy this book?",
    "The committee has not yet decided whether the proposal should be adopted.",
    "If I had known that you were coming, I would have baked a cake.",
    "Thank you, Mr Müller!",
    "My sister lives in Berlin and works as a doctor.",
    "It is raining.",
    "The weather is nice today, so we want to go for a walk.",
]
ODD = [
    "", " ", "  two  spaces ", "tab\there", "line\nbreak", "non-breaking\u00a0space", "\ufeffmark",
    "👩‍👩‍👧 🇩🇪 😀😀", "Straße, Größe, ÜBERMUT, naïve, ẞ", "e\u0301 and é", "日本語の文",
    "שלום עולם", "▁ is not a space", "\U000f2580\U000f2581\U000f2582",
    f"{MASKS[0]} and x{MASKS[3]}y", "<s>, </s>, <unk>, <0x41>",
    "\u2028\u200b\u0000",
    "Donaudampfschifffahrtsgesellschaftskapitän" * 3, "ﬁ ½ ™ … „“ –—", "a" * 200,
]  # fmt: skip
SCORE = """async (pairs) => {
  const { score } = await import("/_static/live/model.js");
  return pairs.map(([source, target]) => score(globalThis.model, source, target));
}"""
TRANSLATE = """async (texts) => {
  const { translate } = await import("/_static/live/model.js");
  return texts.map((text) => translate(globalThis.model, text));
}"""
LOAD = """async () => {
  const { loadModel } = await import("/_static/live/model.js");
  globalThis.model = await loadModel("/_static/live/en-de");
}"""

OPACITIES = """async () => Promise.all([...document.querySelectorAll("image")].map(async (one) => {
  const file = await (await fetch(one.getAttribute("href"))).blob();
  const { width, height } = await createImageBitmap(file);
  const pen = new OffscreenCanvas(width, height).getContext("2d");
  pen.drawImage(await createImageBitmap(file), 0, 0);
  const { data } = pen.getImageData(0, 0, width, height);
  return [one.dataset.slot, [...data].filter((_, n) => n % 4 === 3)];
}))"""


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: the requests are not of interest."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site with the panels of chapter 0, as `make docs` writes them, and docs/live."""
    folder = tmp_path_factory.mktemp("site")
    write_live(folder / "_static" / "live")
    (folder / "walkthrough").mkdir()
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Chapter 0</title>'
    view = (
        '<meta name="viewport" content="width=device-width"><main style="overflow-wrap:anywhere">'
    )
    text = head + view + "\n".join(panels(record()).values()) + "</main>"
    (folder / "walkthrough" / "0.html").write_text(text, encoding="utf-8")
    (folder / "empty.html").write_text(head, encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


Chapter = Callable[..., Page]
PROGRAM = ("model", "search", "tokenizer", "transformer", "weights")
"""The modules of the network. The others draw."""


@pytest.fixture
def chapter(browser: Browser, address: str) -> Iterator[Chapter]:
    """Opens chapter 0. Afterwards checks that no request left the site, and that nothing failed."""
    contexts: list[Any] = []
    requests: list[str] = []
    faults: list[str] = []

    def opener(**options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on("request", lambda one: requests.append(one.url))
        page.goto(f"{address}/walkthrough/0.html")
        return page

    yield opener
    for context in contexts:
        context.close()
    own = (address, "data:", "blob:")
    assert [one for one in requests if not one.startswith(own) and "favicon" not in one] == []
    assert [one for one in faults if "favicon" not in one and "404" not in one] == []


@pytest.fixture(scope="module")
def network(browser: Browser, address: str) -> Iterator[Page]:
    """A page that has loaded the model."""
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{address}/empty.html")
    page.evaluate(LOAD)
    yield page
    page.close()


@pytest.fixture(scope="module")
def model() -> Transducer:
    return load("en-de", engine="native", device="cpu")


def sentences(n: int) -> list[str]:
    """English sentences of the demo and of the docs."""
    found = built_in()
    some = [english for name in ("examples", "test", "dev") for english, _ in found[name]]
    return [*SENTENCES, *some][:n]


def _translated(page: Page, text: str) -> str:
    page.fill("#live-source", text)
    page.click(".live-go")
    expect(page.locator(".live-status")).to_contain_text("score =")
    expect(page.locator("#live")).to_have_attribute("data-state", "ready")
    return page.inner_text(".live-output")


def test_chapter_states_the_length_of_the_program() -> None:
    texts = [(ROOT / f"docs/live/{name}.js").read_text(encoding="utf-8") for name in PROGRAM]
    n_lines = round(sum(text.count("\n") for text in texts), -1)
    chapter = (ROOT / "docs/walkthrough/00_one_sentence.py").read_text(encoding="utf-8")
    assert f"{n_lines} lines of JavaScript" in chapter


def test_subwords_of_1000_sentences_are_those_of_the_package(
    network: Page, model: Transducer
) -> None:
    pairs = built_in()["test"][:300]
    lines = [
        line.strip("\n")
        for path in sorted((ROOT / "docs").glob("*.md"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    texts = [*ODD, *(text for pair in pairs for text in pair), *lines[:600]]
    texts += [f" {text}  ü😀" for text in lines[600:700]]
    assert len({*texts}) >= 1000
    found = network.evaluate(
        "(texts) => texts.map((text) => { const ids = model.tokenizer.encode(text);"
        " return [ids, model.tokenizer.decode(ids)]; })",
        texts,
    )
    tokenizer = model.source_tokenizer
    expected = [[tokenizer.encode(text), text] for text in texts]
    assert [pair for pair in zip(texts, found, expected, strict=True) if pair[1] != pair[2]] == []


def _compare_log_probabilities(network: Page, model: Transducer, texts: list[str]) -> None:
    tokenizer = model.source_tokenizer
    outputs = [one.text for one in model.translate(texts, raw=True, split=False)]
    pairs = [
        [[*tokenizer.encode(one), EOS_ID] for one in pair]
        for pair in zip(texts, outputs, strict=True)
    ]
    found = network.evaluate(SCORE, pairs)
    for (source, target), log_p in zip(pairs, found, strict=True):
        with torch.no_grad():
            logits = model.model(torch.tensor([source]), torch.tensor([target]))[0]
        logits[:, PAD_ID] = -torch.inf
        expected = logits.log_softmax(dim=1)[range(len(target)), target].tolist()
        assert log_p == pytest.approx(expected, abs=1e-3)


def test_log_probabilities_are_those_of_the_reference_network(
    network: Page, model: Transducer
) -> None:
    _compare_log_probabilities(network, model, SENTENCES[:4])


@pytest.mark.slow
def test_log_probabilities_of_100_sentences_are_those_of_the_reference_network(
    network: Page, model: Transducer
) -> None:
    _compare_log_probabilities(network, model, sentences(100))


def _same_outputs(network: Page, model: Transducer, texts: list[str]) -> list[bool]:
    found = [one["text"] for one in network.evaluate(TRANSLATE, texts)]
    expected = [one.text for one in model.translate(texts, raw=True, split=False)]
    return [one == other for one, other in zip(found, expected, strict=True)]


def test_beam_search_finds_the_outputs_of_the_package(network: Page, model: Transducer) -> None:
    assert all(_same_outputs(network, model, SENTENCES[:4]))


@pytest.mark.slow
def test_beam_search_finds_99_percent_of_the_outputs_of_the_package(
    network: Page, model: Transducer
) -> None:
    texts = sentences(100)
    same: list[bool] = []
    for start in range(0, len(texts), 20):  # no call to the browser takes long
        same += _same_outputs(network, model, texts[start : start + 20])
    assert sum(same) >= 0.99 * len(texts)


@pytest.mark.slow
def test_page_translates_ten_sentences_as_the_command_does(chapter: Chapter) -> None:
    options = ["--model", "en-de", "--raw", "--no-split"]
    command = [sys.executable, "-m", "transept", "translate", *options]
    text = "\n".join(SENTENCES) + "\n"
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    page = chapter()
    assert [_translated(page, one) for one in SENTENCES] == done.stdout.splitlines()


def test_page_shows_a_readers_sentence_offline(chapter: Chapter) -> None:
    page = chapter()
    _translated(page, SENTENCES[0])
    page.context.set_offline(True)
    assert _translated(page, SENTENCES[1]) == "Die Bank lehnte den Kredit ab."
    assert page.locator('[data-live="subwords"] li').first.inner_text().split() == ["·The", "503"]
    assert page.locator('[data-shape="encoder.output"]').text_content() == "(9, 256)"
    assert page.locator('[data-live="heads"] .overview button').count() == 8 * 4
    assert page.locator('[data-live="beam"] .hypothesis.best').count() > 5
    step = page.locator("#live-step")
    step.focus()
    for _ in range(30):
        step.press("ArrowLeft")
    expect(page.locator('[data-live="softmax"] output')).to_contain_text("1 of ")
    assert "·Die" in page.locator('[data-live="softmax"] .bars tr.now').inner_text()


@pytest.mark.slow
def test_figures_show_the_layer_and_head_that_a_reader_chooses(chapter: Chapter) -> None:
    page = chapter()
    _translated(page, SENTENCES[1])
    weights = page.locator('image[data-slot="attention.weights"]')
    before = weights.get_attribute("href")
    page.select_option("select[name=Attention]", label="masked decoder self-attention")
    expect(page.locator('[data-text="attention"]')).to_contain_text("masked decoder")
    assert weights.get_attribute("href") != before
    assert page.input_value("select[name=Layer]") == "2"  # the decoder has three layers
    output = page.locator('image[data-slot="encoder.output"]')
    before = output.get_attribute("href")
    page.select_option("select[name=Encoder]", label="layer 1")
    assert output.get_attribute("href") != before


@pytest.mark.slow
def test_page_works_by_keyboard_on_a_phone(chapter: Chapter) -> None:
    page = chapter(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.focus("#live-source")
    page.keyboard.press("Control+A")
    page.keyboard.type(SENTENCES[0])
    page.keyboard.press("Enter")
    expect(page.locator(".live-status")).to_contain_text("score =")
    expect(page.locator("#live")).to_have_attribute("data-state", "ready")
    assert page.inner_text(".live-output") == "Ich hätte gerne eine Tasse Tee."
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.slow
def test_page_explains_sentences_that_it_does_not_translate(chapter: Chapter) -> None:
    page = chapter()
    page.fill("#live-source", "…")
    page.click(".live-go")
    expect(page.locator(".live-status")).to_contain_text("Type a sentence with words")
    page.fill("#live-source", "x" * 300)
    page.click(".live-go")
    expect(page.locator(".live-status")).to_contain_text("at most 100")


def test_page_without_javascript_shows_a_recorded_run(chapter: Chapter) -> None:
    page = chapter(java_script_enabled=False)
    assert "Der alte Mann" in page.inner_text(".live-output")
    assert SENTENCE in page.inner_text(".live-recorded")
    assert not page.locator("form").is_visible()
    assert page.locator(".figure-1 image").count() == 7
    assert page.locator("[data-live=softmax] tbody tr").count() == 13
    assert page.locator("[data-live=heads] img").count() == 8 * 4


@pytest.mark.slow
def test_recorded_pictures_are_those_of_a_run_in_the_page(chapter: Chapter) -> None:
    page = chapter()
    recorded = dict(page.evaluate(OPACITIES))
    _translated(page, SENTENCE)
    # The hardest step and the layers of the figures are the same. Opacities are rounded.
    live = dict(page.evaluate(OPACITIES))
    assert {*recorded} == {*live}
    for slot, opacities in recorded.items():
        differences = [abs(a - b) for a, b in zip(opacities, live[slot], strict=True)]
        assert max(differences) <= 2, slot
