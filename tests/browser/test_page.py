"""The page translates while the user types, and never loses a text."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import FilePayload, Page, Request, expect
from tests.browser.conftest import Opener
from tests.browser.valve import Valve
from tests.integration.servers import KEY, serving

from transept.apps.serve.models import Served, open_model
from transept.apps.serve.settings import ServerSettings

TEXT = (
    "The children play in the garden because the weather is nice.\n\nThe father reads a newspaper."
)
LONGER = " ".join(f"The {who} will wait today." for who in ("father", "mother", "child", "man"))


def translated(client: httpx.Client, text: str, source: str = "en", target: str = "de") -> str:
    body = {"q": text, "source": source, "target": target}
    answer: str = client.post("/translate", json=body).json()["translatedText"]
    return answer


def streamed(client: httpx.Client, text: str, source: str = "en", target: str = "de") -> str:
    """The whole translation of a stream. Its engine may differ from that of /translate."""
    body = {"q": text, "source": source, "target": target}
    last = client.post("/api/stream", json=body).text.strip().split("\n\n")[-1]
    answer: str = json.loads(last.partition("data: ")[2])["text"]
    return answer


def finished(page: Page) -> None:
    expect(page.locator("#state")).to_have_text(re.compile(r"^Translated in"))
    expect(page.locator("#copy")).to_be_visible()


def shown(page: Page) -> str:
    text = page.locator("#result").text_content()
    assert text is not None
    return text


def test_translation_equals_that_of_the_api(open_page: Opener, client: httpx.Client) -> None:
    page = open_page()
    page.fill("#text", TEXT)
    finished(page)
    assert shown(page) == translated(client, TEXT)
    expect(page.locator("#source option").first).to_have_text("English (detected)")
    expect(page.locator("#count")).to_have_text(f"{len(TEXT)} / 20,000")


def test_translation_of_typed_text_is_that_of_the_last_text(
    open_page: Opener, client: httpx.Client
) -> None:
    page = open_page("?source=en&target=de")
    words = ["The", " old", " woman", " sleeps", " in", " the", " garden."]
    for number, word in enumerate(words):
        page.locator("#text").press_sequentially(word)
        if number % 2:  # some translations begin, and the next letter aborts them
            page.wait_for_timeout(260)
    expect(page.locator("#result")).to_have_text(translated(client, "".join(words)))
    finished(page)
    page.fill("#text", "")
    expect(page.locator("#result")).to_have_text("")


@pytest.mark.slow
def test_only_changed_paragraphs_are_translated_again(
    open_page: Opener, client: httpx.Client
) -> None:
    page = open_page("?source=en&target=de")
    sent: list[str] = []

    def remember(request: Request) -> None:
        if request.url.endswith("/api/stream"):
            assert request.post_data_json
            sent.append(request.post_data_json["q"])

    page.on("request", remember)
    page.fill("#text", TEXT)
    finished(page)
    for text in (TEXT.replace("\n\n", "\n\nIt rains.\n\n"), TEXT, f"{TEXT} Yes."):
        page.fill("#text", text)
        expect(page.locator("#result")).to_have_text(streamed(client, text))
        finished(page)
    assert sent[:2] == [TEXT, "It rains.\n\n"]


def test_link_translates_and_follows_the_text(open_page: Opener, client: httpx.Client) -> None:
    page = open_page("?q=Guten+Morgen.&source=de&target=en")
    finished(page)
    assert shown(page) == translated(client, "Guten Morgen.", "de", "en")
    page.fill("#text", "Es regnet.")
    finished(page)
    page.wait_for_url("**/?source=de&target=en&q=Es+regnet.")


def test_swap_in_mid_stream_keeps_the_text(
    open_page: Opener, client: httpx.Client, valve: Valve
) -> None:
    page = open_page("?source=en&target=de", valve.address)
    valve.hold()
    page.fill("#text", LONGER)
    expect(page.locator("#result")).not_to_have_text("")
    page.click("#swap")
    valve.release()
    expect(page.locator("#source")).to_have_value("de")
    expect(page.locator("#target")).to_have_value("en")
    expect(page.locator("#text")).to_have_value(LONGER)
    finished(page)
    assert shown(page) == streamed(client, LONGER, "de", "en")


def test_swap_of_a_whole_translation_can_be_undone(open_page: Opener, client: httpx.Client) -> None:
    page = open_page("?source=en&target=de")
    page.fill("#text", "It rains.")
    finished(page)
    german = shown(page)
    page.click("#swap")
    expect(page.locator("#text")).to_have_value(german)
    expect(page.locator("#result")).to_have_text(translated(client, german, "de", "en"))
    finished(page)
    page.click("#clear")
    expect(page.locator("#text")).to_have_value("")
    page.keyboard.press("Control+z")
    expect(page.locator("#text")).to_have_value(german)
    page.keyboard.press("Control+z")
    expect(page.locator("#text")).to_have_value("It rains.")


def test_server_killed_in_mid_stream_loses_nothing(
    open_page: Opener, client: httpx.Client, valve: Valve
) -> None:
    page = open_page("?source=en&target=de", valve.address)
    valve.hold()
    page.fill("#text", LONGER)
    expect(page.locator("#result")).not_to_have_text("")
    before = shown(page)
    valve.kill()
    expect(page.locator("#state")).to_have_text(re.compile("Trying again"))
    assert page.input_value("#text") == LONGER
    assert shown(page) == before
    valve.release()
    valve.revive()
    finished(page)
    assert shown(page) == streamed(client, LONGER)


@pytest.mark.slow
def test_busy_server_is_asked_again(open_page: Opener, client: httpx.Client) -> None:
    page = open_page("?source=en&target=de")
    busy = {"error": "Slowdown: the server is busy"}
    page.route(
        "**/api/stream",
        lambda route: route.fulfill(status=429, json=busy, headers={"Retry-After": "1"}),
        times=1,
    )
    page.fill("#text", "It rains.")
    expect(page.locator("#state")).to_have_text("The server is busy. Trying again in 1 s.")
    finished(page)
    assert shown(page) == translated(client, "It rains.")


def test_text_that_is_too_long_is_counted_and_not_sent(open_page: Opener) -> None:
    page = open_page()
    page.fill("#text", "a" * 20_003)
    expect(page.locator("#count")).to_have_text("20,003 / 20,000")
    expect(page.locator("#state")).to_have_text("The text is 3 characters too long.")
    expect(page.locator("#text")).to_have_attribute("aria-invalid", "true")


def test_text_in_a_language_that_is_not_translated_is_named(open_page: Opener) -> None:
    page = open_page()
    page.fill("#text", "Buenos días, quisiera una taza de café, por favor.")
    expect(page.locator("#looks-like")).to_have_text(
        "This looks like Spanish. This server translates English, German, and French."
    )
    page.fill("#text", "Good morning, I would like a cup of coffee.")
    expect(page.locator("#looks-like")).to_have_text("")


def test_text_in_a_language_that_is_only_a_target_is_named(open_page: Opener) -> None:
    with serving(open_models("en-de", "de-en", "en-fr"), ServerSettings()) as server:
        page = open_page("", f"{server.base_url}/")
        page.fill("#text", "Bonjour, je voudrais une tasse de café, s'il vous plaît.")
        expect(page.locator("#looks-like")).to_have_text(
            "This looks like French. This server translates English and German."
        )


def test_example_fills_the_empty_box(open_page: Opener) -> None:
    page = open_page()
    page.locator("#chips button").first.click()
    finished(page)
    expect(page.locator("#chips")).to_be_hidden()
    page.keyboard.press("Control+z")
    expect(page.locator("#text")).to_have_value("")
    expect(page.locator("#chips")).to_be_visible()


@pytest.mark.slow
def test_history_is_restored_cleared_and_switched_off(open_page: Opener) -> None:
    page = open_page("?source=en&target=de")
    page.fill("#text", "It rains.")
    finished(page)
    while page.evaluate("localStorage.getItem('transept.history')") is None:
        page.wait_for_timeout(100)
    page.fill("#text", "")
    page.click("#history-open")
    page.click("#history-list button")
    expect(page.locator("#text")).to_have_value("It rains.")
    page.click("#history-open")
    page.click("#history-clear")
    page.uncheck("#history-on")
    expect(page.locator("#history-empty")).to_be_visible()
    page.click("#history-close")
    page.fill("#text", "The child sleeps.")
    finished(page)
    page.wait_for_timeout(1600)  # longer than the page waits before it remembers
    assert page.evaluate("localStorage.getItem('transept.history')") is None


@pytest.mark.slow
def test_key_is_asked_for_and_remembered(
    open_page: Opener, client: httpx.Client, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n")
    with serving(open_models("en-de"), ServerSettings(key_file=keys)) as locked:
        page = open_page("?source=en&target=de&q=It+rains.", f"{locked.base_url}/")
        expect(page.locator("#state")).to_have_text("This server requires an API key.")
        page.fill("#key", KEY)
        page.keyboard.press("Enter")
        finished(page)
        page.reload()
        finished(page)
        assert shown(page) == translated(client, "It rains.")


def open_models(*names: str) -> list[Served]:
    found = (one for name in names for one in open_model(name, None, None, "cpu"))
    return [one for one in found if isinstance(one, Served)]


@pytest.mark.slow
def test_page_fits_every_width(open_page: Opener) -> None:
    page = open_page("?source=en&target=de#look=attention")
    page.fill("#text", "The children play in the garden.")
    page.wait_for_selector("#panel-attention svg")
    for width in (320, 390, 768, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_reference_describes_every_path(open_page: Opener, client: httpx.Client) -> None:
    page = open_page("docs")
    described = client.get("/openapi.json").json()["paths"]
    titles = page.locator("#paths article h3").all_text_contents()
    assert titles == [f"{next(iter(one)).upper()} {path}" for path, one in described.items()]
    expect(page.locator("#models li")).to_have_count(4)


def test_file_is_translated_and_downloaded(open_page: Opener, client: httpx.Client) -> None:
    page = open_page("?source=en&target=de")
    file = FilePayload(
        name="tea.txt", mimeType="text/plain", buffer=b"I would like a cup of tea.\n"
    )
    page.set_input_files("#file-input", files=[file])
    link = page.get_by_role("link", name="Download the translation of tea.txt")
    with page.expect_download() as download:
        link.click()
    expected = translated(client, "I would like a cup of tea.")
    assert Path(download.value.path()).read_text(encoding="utf-8") == f"{expected}\n"
    assert download.value.suggested_filename == "tea_de.txt"
