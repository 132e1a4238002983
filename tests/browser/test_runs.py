"""The training dashboard follows logs while they grow, and the page draws the trees of a parser."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Opener
from tests.integration.servers import every_kind, serving, small_parser, small_transducer

from transept.apps.serve.settings import ServerSettings


def lines(*steps: int) -> str:
    """The lines of a log: the loss and the development set at each step."""

    def at(step: int) -> Iterator[dict[str, Any]]:
        spent = {"seconds": 6.0 * step, "target_tokens": 100 * step}
        yield {"kind": "step", "step": step, "nll": 4 / step, "lr": 0.1, **spent}
        yield {"kind": "validation", "step": step, "nll": 5 / step}
        sample = {"source": "Hello.", "reference": "Hallo.", "output": f"<b>{step}</b>"}
        yield {"kind": "quality", "step": step, "bleu": step, "chrf": step, "samples": [sample]}

    return "".join(f"{json.dumps(line)}\n" for step in steps for line in at(step))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directories = [tmp_path_factory.mktemp(name, numbered=False) for name in ("first", "second")]
    for directory in directories:
        (directory / "metrics.jsonl").write_text(lines(1, 2, 3))
    return directories


@pytest.fixture(scope="module")
def client(runs: list[Path]) -> Iterator[httpx.Client]:
    with serving(every_kind(small_transducer(), small_parser()), ServerSettings(), runs=runs) as it:
        yield it


def chart(page: Page, title: str) -> Any:
    return page.locator("figure").filter(has_text=title)


def test_curves_of_all_runs_are_drawn_and_grow(open_page: Opener, runs: list[Path]) -> None:
    page = open_page("runs")
    bleu = chart(page, "BLEU")
    expect(bleu.locator("polyline")).to_have_count(2)
    assert bleu.locator("svg").get_attribute("aria-label") == "BLEU. Latest: first 3, second 3"
    drawn = bleu.locator('[data-run="first"]').get_attribute("points")
    assert drawn is not None
    assert len(drawn.split()) == 3
    with (runs[1] / "metrics.jsonl").open("a") as log:
        log.write(lines(4))
    expect(bleu.locator("figcaption")).to_contain_text("second 4")
    expect(page.locator("#outputs tr").last).to_contain_text("<b>4</b>")
    page.get_by_role("checkbox", name="first").uncheck()
    expect(bleu.locator("polyline")).to_have_count(1)
    page.get_by_label("Over").select_option("minutes of training")
    expect(bleu.locator("text").last).to_have_text("minutes of training")


def test_page_links_to_the_runs(open_page: Opener) -> None:
    page = open_page()
    page.get_by_role("link", name="Training").click()
    expect(page.get_by_role("heading", name="Training")).to_be_visible()


def test_tree_of_a_sentence_is_drawn(open_page: Opener, client: httpx.Client) -> None:
    page = open_page()
    page.locator("#sentence").fill("one two three")
    page.locator("#sentence").press("Enter")
    tree = client.post("/api/parse", json={"q": "one two three"}).json()["parses"][0]["outputs"][0]
    words = page.locator('#tree text[font-weight="600"]')
    expect(words).to_have_text(["one", "two", "three"])
    label = page.locator("#tree svg").get_attribute("aria-label")
    assert label is not None
    assert label.count("(") == str(tree["tree"]).count("'label'")
