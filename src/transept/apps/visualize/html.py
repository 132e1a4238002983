"""All attention weights of a sentence pair as one interactive HTML page that works offline."""

import base64
import hashlib
import json
import re
from html import escape
from importlib import resources
from typing import Any, Literal

from transept.api.attention import KINDS, Attention, AttentionMap, Kind
from transept.apps.svg import DARK, LIGHT, LINE_WIDTH, N_COLOURS, Colours
from transept.apps.visualize.figures import NAMES, Choice, resolve
from transept.apps.visualize.panels import FAINTEST

Tokens = Literal["words", "pieces"]

UNIT = 10_000
"""Weights are stored as integers in units of 1/10,000. That is compact, because most are 0."""

NOTES: dict[Kind, str] = {
    "encoder": "",
    "decoder": "Above is each target word; below are the target words before it.",
    "source": "Above are the target words; below are the source words.",
}


def to_html(attention: Attention, choice: Choice, tokens: Tokens = "words") -> str:
    """Write a page that shows any kind of attention, layer, head and word.

    Args:
        attention: Between subwords. The page merges them into words.
        choice: The initial selection.
        tokens: Whether to show words or subwords initially.
    """
    style = _grounds() + _part("page.css")
    script = _part("page.js")
    parts = {
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}",
        "title": escape(attention.source),
        "style": style,
        "script": script,
        "data": _escape_json(json.dumps(_data(attention, choice, tokens), ensure_ascii=False)),
    }
    # In one pass, so that `{{…}}` in a text is not taken for a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("page.html"))


def _data(attention: Attention, choice: Choice, tokens: Tokens) -> dict[str, Any]:
    shown = attention.joined() if tokens == "words" else attention
    layer, heads, word = resolve(shown.of(choice.kind), choice)
    return {
        "source": attention.source,
        "target": attention.target,
        "names": NAMES,
        "notes": NOTES,
        "unit": UNIT,
        "colours": N_COLOURS,
        "faintest": FAINTEST,
        "line_width": LINE_WIDTH,
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
    heads = "".join(
        f"--h{number}:{colour};--on{number}:{_readable_on(colour)};"
        for number, colour in enumerate(colours.heads)
    )
    ground = f"--paper:{colours.paper};--ink:{colours.ink};--quiet:{colours.faint};--edge:{edge};"
    return heads + ground


def _readable_on(colour: str) -> str:
    """Black or white, whichever has the higher WCAG contrast."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#fff"


def _part(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
