"""The web page of `transept serve`: seconds to the first answer, and from a key press to text.

    python benchmarks/page.py [--quick] [--json FILE]

Requires Chromium (`apt install chromium`, or its path in TRANSEPT_CHROMIUM). A script in the page
inserts a text, as a key press or a paste does. It notes when the first character of the translation
appears, and when the translation is complete. These times include the pause after which the page
takes a text for finished.
"""

import os
import shutil
import time

import httpx
from measuring import Goal, Row, parser_of, report
from playwright.sync_api import Page, sync_playwright
from served import serving

TEXTS = {
    "one sentence": "The old man is reading a book.",
    "five paragraphs": "\n\n".join([
        "The children play in the garden because the weather is nice today. Their father reads the "
        "newspaper and drinks tea.",
        "We would like to thank you for your letter of last week. Our answer will follow soon.",
        "The committee will meet again on Monday in order to discuss the budget of the next year.",
        "My sister has bought a new bicycle. She rides to school with it every day.",
        "It is raining again. The train was late, so nobody came to the meeting in time.",
    ]),
}  # fmt: skip
TYPE = """(text) => new Promise((resolve) => {
  const [box, out, copy] = ["text", "result", "copy"].map((id) => document.getElementById(id));
  box.focus();
  box.select();
  document.execCommand("delete");
  setTimeout(() => {
    const start = performance.now();
    let first = 0;
    const observer = new MutationObserver(() => {
      if (!first && out.textContent) first = performance.now() - start;
      if (first && !copy.hidden) {
        observer.disconnect();
        resolve([first, performance.now() - start]);
      }
    });
    const all = { subtree: true, childList: true, characterData: true, attributes: true };
    observer.observe(document.querySelector(".panes"), all);
    document.execCommand("insertText", false, text);
  }, 600);
})"""


def seconds_to_answer() -> float:
    """The time from the start of a server with the bundled models to its first answer."""
    start = time.perf_counter()
    with serving() as (_, port, _):
        httpx.get(f"http://127.0.0.1:{port}/languages").raise_for_status()
        return time.perf_counter() - start


def latencies(page: Page, text: str, rounds: int) -> list[tuple[float, float]]:
    """Milliseconds to the first character and to the end, after a warm-up round."""
    found: list[tuple[float, float]] = [page.evaluate(TYPE, text) for _ in range(rounds + 1)]
    return found[1:]


def main() -> None:
    arguments = parser_of(__doc__, quick="few rounds").parse_args()
    starts, rounds = (2, 3) if arguments.quick else (5, 20)
    times = [seconds_to_answer() for _ in range(starts + 1)][1:]
    rows = [Row.of("start", "server", times, "s")]
    chromium = os.environ.get("TRANSEPT_CHROMIUM") or shutil.which("chromium")
    with serving() as (_, port, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/?source=en&target=de")
        page.wait_for_selector("#waiting", state="hidden")
        for work, text in TEXTS.items():
            first, last = zip(*latencies(page, text, rounds), strict=True)
            rows.append(Row.of(work, "first character", first, "ms"))
            rows.append(Row.of(work, "whole translation", last, "ms"))
        browser.close()
    start, first_of_one, _, _, last_of_five = rows
    goals = [
        Goal("seconds from start to the first answer", start.value, 4, start.value <= 4),
        Goal.below("first character of a sentence, ms", first_of_one.value, 150),
        Goal.below("five paragraphs, ms", last_of_five.value, 1000),
    ]
    report("page", rows, goals, ["torch", "ctranslate2", "uvicorn", "playwright"], arguments.json)


if __name__ == "__main__":
    main()
