"""Chapter 0 of the walk-through in Chromium: time per sentence, and bytes that a reader downloads.

    python benchmarks/live.py --site build/docs/html [--json FILE]

`make docs` builds the site. Chromium is Debian's, or the one that TRANSEPT_CHROMIUM names.
"""

import os
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from measuring import Goal, Row, parser_of, report
from playwright.sync_api import Page, sync_playwright

SENTENCES = (
    "I would like a cup of tea.",
    "The bank refused the loan.",
    "The old man reads a book in the garden.",
    "She gave her brother the letter that she had found.",
    "The committee has not yet decided whether the proposal should be adopted.",
    "If I had known that you were coming, I would have baked a cake.",
)
ROUNDS = 3
PAGE = "walkthrough/00_one_sentence.html"


def main() -> int:
    """Measure, print and record."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--site", type=Path, required=True, help="the built site")
    chosen = parser.parse_args()
    handler = partial(SimpleHTTPRequestHandler, directory=str(chosen.site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    chromium = os.environ.get("TRANSEPT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        sizes: list[int] = []
        page.on("requestfinished", lambda one: sizes.append(one.sizes()["responseBodySize"]))
        page.goto(f"http://127.0.0.1:{server.server_port}/{PAGE}")
        before = sum(sizes)
        translated(page, SENTENCES[0])
        times = [translated(page, one) for _ in range(ROUNDS) for one in SENTENCES]
        page.wait_for_load_state("networkidle")
        rows = [
            Row.of("a sentence", f"Chromium {browser.version.partition('.')[0]}", times, "ms"),
            Row.once("page", "before a translation", before / 1e6, "MB"),
            Row.once("page", "with the model", sum(sizes) / 1e6, "MB"),
        ]
        browser.close()
    goals = [Goal.below("a sentence in 2 s", max(times) / 1000, 2.0)]
    report("live", rows, goals, ["playwright"], chosen.json)
    return 0


def translated(page: Page, text: str) -> float:
    """Translate a sentence in the page and return its milliseconds."""
    page.fill("#live-source", text)
    page.click(".live-go")
    page.wait_for_selector('#live[data-state="ready"][data-milliseconds]')
    return float(page.get_attribute("#live", "data-milliseconds") or "nan")


if __name__ == "__main__":
    raise SystemExit(main())
