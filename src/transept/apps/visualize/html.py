"""All attention weights of a sentence pair as one interactive HTML page that works offline."""

import base64
import hashlib
import json
import posixpath
import re
from html import escape
from importlib import resources
from typing import Any, Literal

from transept.api.attention import KINDS, Attention, AttentionMap
from transept.apps.svg import DARK, LIGHT, Colours
from transept.apps.visualize.figures import Choice, resolve

Tokens = Literal["words", "pieces"]

UNIT = 10_000
"""Weights are stored as integers in units of 1/10,000. That is compact, because most are 0."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "([^"]+)";\n', re.MULTILINE)


def to_html(attention: Attention, choice: Choice, tokens: Tokens = "words") -> str:
    """Write a page that shows any kind of attention, layer, head and word.

    Args:
        attention: Between subwords. The page merges them into words.
        choice: The initial selection.
        tokens: Whether to show words or subwords initially.
    """
    style = _grounds() + _read("visualize/page/page.css") + _read("explorer/explorer.css")
    script = _bundle("visualize/page/page.js")
    parts = {
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}",
        "title": escape(attention.source),
        "style": style,
        "script": script,
        "data": _escape_json(json.dumps(_data(attention, choice, tokens), ensure_ascii=False)),
    }
    # In one pass, so that `{{…}}` in a text is not taken for a placeholder.
    return re.sub(
        r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("visualize/page/page.html")
    )


def _data(attention: Attention, choice: Choice, tokens: Tokens) -> dict[str, Any]:
    shown = attention.joined() if tokens == "words" else attention
    layer, heads, word = resolve(shown.of(choice.kind), choice)
    return {
        "source": attention.source,
        "target": attention.target,
        "unit": UNIT,
        "chosen": {
            "kind": choice.kind,
            "layer": layer + 1,
            "heads": [head + 1 for head in heads],
            "word": word,
            "tokens": tokens,
        },
        "maps": {kind: _map(attention.of(kind)) for kind in KINDS},
    }


def _map(attention: AttentionMap) -> dict[str, Any]:
    described = attention.described()
    return {**described, "weights": (attention.weights * UNIT).round().int().tolist()}


def _escape_json(text: str) -> str:
    """Escape JSON so that `</script>` or `<!--` in a text cannot end the script element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _grounds() -> str:
    light, dark = _ground(LIGHT, edge="#dfe3e8"), _ground(DARK, edge="#343a42")
    return f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def _ground(colours: Colours, edge: str) -> str:
    """The palette of docs/internals/style.md, under the same names."""
    ground = {
        **{f"chart-{number}": colour for number, colour in enumerate(colours.heads)},
        "t-paper": colours.paper,
        "t-surface": colours.paper,
        "t-ink": colours.ink,
        "t-quiet": colours.faint,
        "t-edge": edge,
        "t-accent": colours.heads[0],
    }
    return "".join(f"--{name}:{colour};" for name, colour in ground.items())


def _bundle(path: str) -> str:
    """A module with those that it imports as one module, because a file cannot import others."""
    parts: dict[str, str] = {}

    def add(path: str) -> None:
        text = _read(path)
        for other in _IMPORT.findall(text):
            imported = posixpath.normpath(posixpath.join(posixpath.dirname(path), other))
            if imported not in parts:
                add(imported)
        parts[path] = re.sub(r"^export ", "", _IMPORT.sub("", text), flags=re.MULTILINE)

    add(path)
    return "\n".join(parts.values())


def _read(path: str) -> str:
    return resources.files("transept.apps").joinpath(path).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
