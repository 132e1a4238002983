"""One server with the bundled models, one Chromium, and a page per test.

Without Chromium the tests are skipped: `apt install chromium`, or set TRANSEPT_CHROMIUM.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.valve import Valve, valve_before
from tests.integration.servers import PATIENCE, serving

from transept.apps.serve.models import open_model
from transept.apps.serve.settings import ServerSettings
from transept.shelf import shipped_models

CHROMIUM = os.environ.get("TRANSEPT_CHROMIUM") or shutil.which("chromium")
Opener = Callable[..., Page]
expect.set_options(timeout=1000 * PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder on a machine without Chromium."""
    if CHROMIUM is None:
        why = "Chromium is not installed: the tests of the page need it (apt install chromium)"
        for item in items:
            if "tests/browser/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    served = [one for name in shipped_models() for one in open_model(name, None, None, "cpu")]
    with serving(served, ServerSettings()) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Not for the session: Playwright runs an event loop in this thread until it is closed.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def valve(client: httpx.Client) -> Iterator[Valve]:
    assert client.base_url.port is not None
    with valve_before(client.base_url.port) as valve:
        yield valve


@pytest.fixture
def open_page(browser: Browser, client: httpx.Client) -> Iterator[Opener]:
    """Opens pages. Afterwards checks that no request left the origin, and that nothing failed."""
    contexts: list[Any] = []
    strangers: list[str] = []
    faults: list[str] = []

    def opener(address: str = "", base: str = f"{client.base_url}/", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            lambda message: (
                faults.append(message.text) if "Content Security Policy" in message.text else None
            ),
        )
        page.on(
            "request",
            lambda one: (
                strangers.append(one.url) if not one.url.startswith((base, "blob:")) else None
            ),
        )
        page.goto(base + address)
        page.wait_for_selector("#waiting", state="hidden")
        return page

    yield opener
    for context in contexts:
        context.close()
    assert strangers == []
    assert faults == []
