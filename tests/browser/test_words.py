"""The words of a translation: their sources, doubts and alternatives, and the beam search."""

from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Opener
from tests.browser.test_access import focus_of, press_until
from tests.browser.test_page import shown

TEXT = "😀 The children play in the garden.\n\nThe old man will wait for his tired daughter."
PAIR = {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def sentences(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.post("/api/words", json={"q": TEXT, **PAIR}).json()
    found: list[dict[str, Any]] = answer["sentences"]
    return found


def opened(open_page: Opener, text: str = TEXT, state: str = "") -> Page:
    page = open_page(f"?{urlencode({**PAIR, 'q': text})}{state}")
    page.wait_for_selector("#result .word")
    return page


def test_words_and_doubts_are_those_of_the_api(
    open_page: Opener, sentences: list[dict[str, Any]]
) -> None:
    page = opened(open_page)
    words = [word for one in sentences for word in one["words"]]
    assert len(sentences) == 2
    assert page.locator(".word").all_text_contents() == [word["text"] for word in words]
    doubted = [word["text"] for word in words if word["probability"] < 0.3]
    assert page.locator("#result .doubt").all_text_contents() == doubted
    for number, word in enumerate(words):
        drawn = page.locator(".word").nth(number).get_attribute("data-probability")
        assert float(drawn or "nan") == pytest.approx(word["probability"], abs=1e-3)


def test_word_marks_its_source_words(open_page: Opener, sentences: list[dict[str, Any]]) -> None:
    page = opened(open_page)
    number = 0
    for sentence in sentences:
        for word in sentence["words"]:
            page.locator(".word").nth(number).hover()
            behind = [sentence["source"][start:end] for start, end in sorted(word["sources"])]
            assert page.locator("#backdrop mark").all_text_contents() == behind
            number += 1
    assert page.locator("#backdrop").text_content() == f"{TEXT}\n"


def test_chosen_word_is_decoded_again(open_page: Opener, client: httpx.Client) -> None:
    q = "The old man will wait for his tired daughter."
    page = opened(open_page, q)
    before = shown(page)
    second = page.locator(".word").nth(1)
    prefix = before[: before.index(second.inner_text())]
    second.click()
    body = {"q": q, **PAIR, "prefix": prefix, "n": 6}
    offered = client.post("/api/choices", json=body).json()["choices"]
    others = [one["text"] for one in offered if one["text"] != second.inner_text()]
    menu = page.get_by_role("dialog").locator("section").first
    expect(menu.locator("button > span:first-child")).to_have_text(others)
    menu.get_by_role("button").first.click()
    body = {"q": q, **PAIR, "prefix": prefix + others[0]}
    (expected,) = client.post("/api/words", json=body).json()["sentences"]
    expect(page.locator("#result")).to_have_text(expected["text"])
    assert expected["text"].startswith(prefix + others[0])


def test_menu_offers_other_translations_by_keyboard(
    open_page: Opener, client: httpx.Client
) -> None:
    q = "The children play in the garden."
    page = opened(open_page, q)
    first = shown(page)
    body = {"q": q, **PAIR, "alternatives": 3}
    alternatives = client.post("/translate", json=body).json()["alternatives"]
    page.locator("#text").focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("word"):
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    menu = page.get_by_role("dialog")
    expect(menu.locator("section").nth(1).get_by_role("button")).to_have_text(alternatives)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    assert page.evaluate("document.activeElement.dataset.word") == "1"
    page.keyboard.press("Enter")
    menu.get_by_role("button", name=alternatives[0]).click()
    expect(page.locator("#result")).to_have_text(alternatives[0])
    page.locator(".word").first.click()
    menu.get_by_role("button", name=first, exact=True).click()
    expect(page.locator("#result")).to_have_text(first)


def test_beam_tree_equals_the_record(open_page: Opener, client: httpx.Client) -> None:
    q = "The old man will wait for his daughter."
    page = opened(open_page, q, "#look=beam")
    page.wait_for_selector(".hypothesis")
    record = client.post("/api/beam", json={"q": q, **PAIR}).json()
    read = "(nodes) => nodes.map((n) => [n.closest('.step').dataset.step, n.dataset.id,"
    read += " n.dataset.parent, n.dataset.state, n.dataset.score, n.dataset.normalized])"
    drawn = page.locator(".hypothesis").evaluate_all(read)
    expected = [(n, one) for n, step in enumerate(record["steps"]) for one in step["hypotheses"]]
    for (step, number, parent, state, *scores), (n, one) in zip(drawn, expected, strict=True):
        assert (int(step), int(number), state) == (n, one["id"], one["state"])
        assert parent == ("" if one["parent"] is None else str(one["parent"]))
        assert [*map(float, scores)] == pytest.approx([one["score"], one["normalized"]], abs=1e-6)
    best = page.locator(".hypothesis.best").evaluate_all("(all) => all.map((n) => n.dataset.id)")
    known = {one["id"]: one for step in record["steps"] for one in step["hypotheses"]}
    line = [record["winner"]]
    while (parent := known[line[-1]]["parent"]) is not None:
        line.append(parent)
    assert sorted(map(int, best)) == sorted(line)
    expect(page.locator(".reason")).to_have_text(record["reason"])


@pytest.mark.slow
def test_beam_search_is_stepped_by_keyboard(open_page: Opener, client: httpx.Client) -> None:
    page = opened(open_page, "It rains.", "#look=attention")
    page.wait_for_selector("#panel-attention svg")
    page.locator("#copy").focus()
    press_until(page, "Tab", "tab-attention")
    page.keyboard.press("ArrowRight")
    assert focus_of(page) == "tab-beam"
    page.wait_for_selector(".hypothesis")
    steps = client.post("/api/beam", json={"q": "It rains.", **PAIR}).json()["steps"]
    press_until(page, "Tab", "beam-step")
    page.keyboard.press("Home")
    expect(page.locator(".legend + .hypotheses tbody tr")).to_have_count(
        len(steps[0]["hypotheses"])
    )
    texts = [one["text"] for one in steps[1]["hypotheses"]]
    page.keyboard.press("ArrowRight")
    expect(page.locator(".hypotheses td:first-child")).to_have_text(texts)
    press_until(page, "Tab", "Tree of hypotheses")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("output[for=beam-step]")).to_have_text(f"1 of {len(steps)}")
