"""Take the screenshots of the documentation: the server's page and the page of `visualize`.

It needs Chromium and about ten seconds, and writes `docs/figures/*.png`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

FIGURES = Path(__file__).resolve().parents[1] / "figures"
PAIR = {"source": "en", "target": "de"}
TEXT = (
    "The weather report says that it will rain again tomorrow, so the children must play inside. "
    "Their father would rather read the newspaper than look after them."
)
SENTENCE = "The old man is reading a book because his children are asleep."
DESK, PHONE = (1280, 680), (390, 760)
RUNS = ("europarl-en-de-base", "europarl-en-de-base-equal-tokens")
"""Recorded runs with the same vocabulary, so that their losses can be compared."""


@contextmanager
def serving(*runs: Path) -> Iterator[str]:
    """The address of a server with the bundled models, which follows these training runs."""
    command = [sys.executable, "-m", "transept", "serve", "--port", "0"]
    command += [word for run in runs for word in ("--run", str(run))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1]
        server.terminate()


def opened(browser: Browser, address: str, size: tuple[int, int], scheme: str) -> Page:
    """A page of this size in one of the two colour schemes."""
    page = browser.new_page(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page.goto(address)
    return page


def translated(browser: Browser, base: str, text: str, state: str = "", **options: str) -> Page:
    """The server's page with a translation."""
    size = PHONE if options.get("size") == "phone" else DESK
    address = f"{base}/?{urlencode({**PAIR, 'q': text})}{state}"
    page = opened(browser, address, size, options.get("scheme", "light"))
    page.wait_for_selector("#result .word")
    return page


def take(browser: Browser, base: str) -> None:
    """Take the pictures of the server's page."""
    page = translated(browser, base, TEXT)
    page.locator(".word").nth(2).click()
    page.wait_for_selector(".menu section:nth-of-type(2) button")
    page.screenshot(path=FIGURES / "page-words.png")
    page = translated(browser, base, SENTENCE, "#look=attention&sinks=off", scheme="dark")
    page.wait_for_selector("#panel-attention svg")
    page.locator("#look").screenshot(path=FIGURES / "page-attention.png")
    page = translated(browser, base, SENTENCE, "#look=beam")
    page.wait_for_selector(".hypothesis")
    page.locator("#look").screenshot(path=FIGURES / "page-beam.png")
    page = translated(browser, base, SENTENCE, size="phone", scheme="dark")
    page.locator(".word").nth(3).hover()
    page.screenshot(path=FIGURES / "page-phone.png")


def log_of(name: str, folder: Path) -> Path:
    """A run directory with the validation losses of a recorded run."""
    run = folder / name
    run.mkdir()
    curve = json.loads((FIGURES.parent / "results" / f"{name}.json").read_bytes())["curve"]
    with (run / "metrics.jsonl").open("w") as log:
        for point in curve:
            loss = {"kind": "validation", "step": point["step"], "nll": point["nll"]}
            log.write(f"{json.dumps({'kind': 'step', **point, 'nll': None})}\n")
            log.write(f"{json.dumps(loss)}\n")
    return run


def take_runs(browser: Browser, base: str) -> None:
    """Take the picture of the training dashboard."""
    page = opened(browser, f"{base}/runs", (1280, 640), "light")
    page.wait_for_selector("#charts svg")
    page.screenshot(path=FIGURES / "page-runs.png")


def take_attention_page(browser: Browser) -> None:
    """Take the picture of the page that `transept visualize` writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        command = [sys.executable, "-m", "transept", "visualize", SENTENCE, "--output", str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        page = opened(browser, file.as_uri(), DESK, "light")
        page.wait_for_selector("svg")
        page.screenshot(path=FIGURES / "attention-page.png")


def main() -> None:
    """Take all pictures."""
    chromium = os.environ.get("TRANSEPT_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not installed: apt install chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        runs = [log_of(name, Path(folder)) for name in RUNS]
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with serving(*runs) as base:
            take(browser, base)
            take_runs(browser, base)
        take_attention_page(browser)
        browser.close()


if __name__ == "__main__":
    main()
