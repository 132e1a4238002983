"""The palette of docs/internals/style.md is the one that the site and pictures have."""

import re
from pathlib import Path
from runpy import run_path

import pytest
from making.palette import DARK, LIGHT, Palette

from transept.apps.visualize import html

ROOT = Path(__file__).resolve().parents[2]


def test_described_palette_is_the_sites() -> None:
    text = (ROOT / "docs" / "internals" / "style.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `--(t-\w+)` \| `(#\w+)` \| `(#\w+)` \|", text, re.MULTILINE)
    options = run_path(str(ROOT / "docs" / "conf.py"))["html_theme_options"]
    light, dark = options["light_css_variables"], options["dark_css_variables"]
    assert {name for name, *_ in described} == {name for name in light if name.startswith("t-")}
    for name, in_light, in_dark in described:
        assert (light[name], dark[name]) == (in_light, in_dark)
    assert light["chart-3"] == LIGHT.series[3]


@pytest.mark.parametrize(("theme", "palette"), [("LIGHT", LIGHT), ("DARK", DARK)])
def test_attention_pictures_have_the_sites_colours(theme: str, palette: Palette) -> None:
    colours = getattr(html, theme)
    assert (colours.paper, colours.ink, colours.faint) == (
        palette.paper,
        palette.ink,
        palette.quiet,
    )
    assert colours.heads == palette.series
    assert palette.accent == palette.series[0]


@pytest.mark.parametrize(("number", "palette"), [(0, LIGHT), (1, DARK)])
def test_server_page_has_the_sites_colours(number: int, palette: Palette) -> None:
    style = (ROOT / "src/transept/apps/serve/pages/style.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--t-(\w+): (#\w+)", re.findall(r":root \{[^}]*\}", style)[number]))
    assert colours == {name: value for name, value in palette._asdict().items() if name != "series"}
    heads = re.findall(r"--chart-\d: (#\w+)", re.findall(r":root \{[^}]*\}", style)[number])
    assert tuple(heads) == palette.series


def test_server_page_has_the_sites_logo() -> None:
    icon = ROOT / "src/transept/apps/serve/pages/icon.svg"
    assert icon.read_text("utf-8") == (ROOT / "docs/_static/logo.svg").read_text("utf-8")
