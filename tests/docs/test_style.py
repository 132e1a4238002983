"""The palette that docs/internals/style.md describes is the one that pictures and site have."""

import re
from pathlib import Path
from runpy import run_path

from transept.apps.svg import DARK, LIGHT

ROOT = Path(__file__).resolve().parents[2]


def test_described_palette_is_the_sites() -> None:
    text = (ROOT / "docs" / "internals" / "style.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `--(t-\w+)` \| `(#\w+)` \| `(#\w+)` \|", text, re.MULTILINE)
    options = run_path(str(ROOT / "docs" / "conf.py"))["html_theme_options"]
    light, dark = options["light_css_variables"], options["dark_css_variables"]
    assert {name for name, *_ in described} == {name for name in light if name.startswith("t-")}
    for name, on_white, on_black in described:
        assert (light[name], dark[name]) == (on_white, on_black)
    assert (light["t-paper"], dark["t-paper"]) == (LIGHT.paper, DARK.paper)
    assert light["chart-3"] == LIGHT.heads[3]
