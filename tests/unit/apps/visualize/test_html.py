"""The page contains all weights, loads nothing external, and escapes texts."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from tests.unit.apps.visualize.conftest import NASTY

from transept.api.attention import KINDS, Attention
from transept.apps.visualize.figures import Choice
from transept.apps.visualize.html import to_html
from transept.errors import ConfigError

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Page(HTMLParser):
    """The elements of a page, and the text in each of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.texts:
            self.texts[self._open].append(data)


def test_page_contains_every_weight(attention: Attention) -> None:
    data = json.loads(Page(to_html(attention, Choice())).texts["script"][0])
    assert (data["source"], data["target"]) == (attention.source, attention.target)
    for kind in KINDS:
        weights = torch.tensor(data["maps"][kind]["weights"]) / data["unit"]
        torch.testing.assert_close(weights, attention.of(kind).weights, atol=1e-4, rtol=0)
    assert data["chosen"] == {
        "kind": "encoder", "layer": 2, "heads": [1], "word": None, "tokens": "words",
    }  # fmt: skip


def test_page_escapes_texts(nasty: Attention) -> None:
    page = Page(to_html(nasty, Choice()))
    data, script = page.texts["script"]
    assert json.loads(data)["source"] == NASTY
    assert "<" not in data
    assert script.rstrip().endswith("});")
    (title,) = page.texts["title"]
    assert NASTY in title


def test_page_loads_and_runs_nothing_external(attention: Attention) -> None:
    text = to_html(attention, Choice())
    page = Page(text)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert not [name for _, name, _ in page.attributes if name in ("src", "href", "style")]
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in text
    (policy,) = (v for _, name, v in page.attributes if name == "content" and v and "-src" in v)
    (style,), script = page.texts["style"], page.texts["script"][1]
    for part, kind in ((style, "style"), (script, "script")):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_invalid_choice_is_rejected(attention: Attention) -> None:
    with pytest.raises(ConfigError, match="layer 7: the model has layers 1 to 3"):
        to_html(attention, Choice(layer=7))


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("tokens", ["words", "pieces"])
def test_browser_draws_the_weights(attention: Attention, tmp_path: Path, tokens: str) -> None:
    path = tmp_path / "page.html"
    words = tokens == "words"
    choice = Choice(kind="source", layer=3, heads=(2, 4), word="3")
    path.write_text(to_html(attention, choice, "words" if words else "pieces"), encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    widths = [float(w) for w in re.findall(r'<line [^>]*stroke-width="([\d.]+)"', run.stdout)]
    shown = attention.joined() if words else attention
    expected = torch.cat([shown.cross.weights[2, head, 2] for head in (1, 3)])
    torch.testing.assert_close(torch.tensor(widths) / 5, expected, atol=1e-3, rtol=0)
    (said,) = re.findall(r'class="said"[^>]*>([^<]*)', run.stdout)
    assert said.startswith(f"“{shown.cross.queries.pieces[2].lstrip('▁')}” attends most to “")
