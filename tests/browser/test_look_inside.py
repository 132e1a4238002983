"""Look inside: the attention that is drawn is that of the model."""

import math
from pathlib import Path
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Page, expect
from tests.browser.conftest import Opener

import transept
from transept.api.attention import Attention, Kind

SENTENCE = "The clever father will wait in the garden."
CLOSE = 1e-3
SHAPES = {"lines": "#panel-attention line", "heat": "#panel-attention .cell"}


@pytest.fixture(scope="module")
def attention() -> Attention:
    model = transept.load("en-de", device="cpu")
    assert isinstance(model, transept.Transducer)
    return model.attend(SENTENCE)


def opened(open_page: Opener, **state: str) -> Page:
    query = urlencode({"source": "en", "target": "de", "q": SENTENCE})
    page = open_page(f"?{query}#{urlencode({'look': 'attention', **state})}")
    page.wait_for_selector("#panel-attention svg")
    return page


def weights(page: Page, shapes: str) -> dict[tuple[int, int, int], float]:
    """The weights of the shapes, by head, query and key. Heads count from 1."""
    read = "(nodes) => nodes.map(({dataset: d}) => [d.head, d.query, d.key, d.weight].map(Number))"
    rows = page.locator(shapes).evaluate_all(read)
    return {(int(head), int(query), int(key)): weight for head, query, key, weight in rows}


@pytest.mark.parametrize(
    ("kind", "view", "tokens"),
    [
        ("source", "heat", "pieces"),
        ("decoder", "lines", "pieces"),
        pytest.param("encoder", "heat", "words", marks=pytest.mark.slow),
        pytest.param("source", "lines", "words", marks=pytest.mark.slow),
    ],
)
def test_drawn_attention_equals_the_tensor(
    open_page: Opener, attention: Attention, kind: Kind, view: str, tokens: str
) -> None:
    state = {"kind": kind, "view": view, "tokens": tokens, "layer": "2", "heads": "1.3"}
    page = opened(open_page, **state, sinks="on")
    drawn = weights(page, SHAPES[view])
    expected = (attention.joined() if tokens == "words" else attention).of(kind).weights[1]
    n_queries, n_keys = expected.shape[1:]
    assert {head for head, _, _ in drawn} == {1, 3}
    for head in (1, 3):
        got = [[drawn.get((head, q, k), 0.0) for k in range(n_keys)] for q in range(n_queries)]
        torch.testing.assert_close(
            torch.tensor(got), expected[head - 1].float(), atol=CLOSE, rtol=0
        )


def test_hidden_sinks_keep_the_other_weights(open_page: Opener, attention: Attention) -> None:
    page = opened(open_page, kind="encoder", view="heat", layer="2", heads="1", sinks="off")
    drawn = weights(page, SHAPES["heat"])
    words = attention.joined().encoder.queries.words
    kept = [number for number, word in enumerate(words) if word not in (".", "</s>")]
    assert {query for _, query, _ in drawn} == {key for _, _, key in drawn} == {*kept}
    expected = attention.joined().encoder.weights[1, 0]
    for (_, query, key), weight in drawn.items():
        assert math.isclose(weight, float(expected[query, key]), abs_tol=CLOSE)


@pytest.mark.slow
def test_state_is_in_the_address(open_page: Opener) -> None:
    page = opened(open_page)
    page.get_by_role("radio", name="heat map").check(force=True)
    page.get_by_role("radio", name="Decoder self-attention").check(force=True)
    page.wait_for_url("**kind=decoder*view=heat*")
    before = weights(page, SHAPES["heat"])
    page.reload()
    page.wait_for_selector("#panel-attention .cell")
    assert weights(page, SHAPES["heat"]) == before
    page.get_by_role("button", name="Figure 3").click()
    expect(page.locator("#panel-attention .said")).to_contain_text("attends most to")
    assert "kind=encoder" in page.url


@pytest.mark.slow
def test_overview_shows_every_head_and_opens_one(open_page: Opener, attention: Attention) -> None:
    page = opened(open_page, view="overview")
    n_layers, n_heads = attention.cross.weights.shape[:2]
    expect(page.locator(".overview button")).to_have_count(n_layers * n_heads)
    page.get_by_role("button", name="2.3: layer 2, head 3").click()
    page.wait_for_url("**layer=2&heads=3&view=lines*")
    expect(page.locator("#panel-attention svg")).to_be_visible()


@pytest.mark.slow
def test_drawing_is_saved(open_page: Opener, tmp_path: Path) -> None:
    page = opened(open_page, layer="2", heads="1")
    n_lines = page.locator(SHAPES["lines"]).count()
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG").click()
    saved.value.save_as(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").count("<line") == n_lines
    with page.expect_download() as saved:
        page.get_by_role("button", name="PNG").click()
    saved.value.save_as(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
