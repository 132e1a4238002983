"""Sphinx: how the site looks. `make docs` builds it."""

import tomllib
from pathlib import Path

from transept.apps.svg import DARK, LIGHT, Colours
from transept.version import __version__

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
ABOUT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
REPOSITORY = ABOUT.get("urls", {}).get("Repository")
"""The site links the repository if pyproject.toml names its address."""
SANS = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif'
MONOSPACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'


def variables(colours: Colours, surface: str, edge: str) -> dict[str, str]:
    """The palette of docs/internals/style.md as custom properties, and furo's in its terms."""
    palette = {
        "t-paper": colours.paper,
        "t-surface": surface,
        "t-ink": colours.ink,
        "t-quiet": colours.faint,
        "t-edge": edge,
        "t-accent": colours.heads[0],
    }
    charts = {f"chart-{number}": colour for number, colour in enumerate(colours.heads)}
    furo = {
        "color-brand-primary": "var(--t-accent)",
        "color-brand-content": "var(--t-accent)",
        "color-brand-visited": "var(--t-accent)",
        "color-background-primary": "var(--t-paper)",
        "color-background-secondary": "var(--t-surface)",
        "color-background-border": "var(--t-edge)",
        "color-foreground-primary": "var(--t-ink)",
        "color-foreground-secondary": "var(--t-quiet)",
        "font-stack": SANS,
        "font-stack--headings": SANS,
        "font-stack--monospace": MONOSPACE,
    }
    ink = {"chart-ink": "var(--t-ink)", "chart-quiet": "var(--t-quiet)"}
    return palette | charts | ink | furo


project = "transept"
version = release = __version__
html_title = f"transept {release}"
html_show_copyright = False
smartquotes = False  # it would turn the two dashes of an option into one

extensions = ["myst_parser"]
myst_heading_anchors = 4

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["transept.css"]
html_js_files = ["copy.js"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": variables(LIGHT, surface="#f6f7f9", edge="#dfe3e8"),
    "dark_css_variables": variables(DARK, surface="#1b1f24", edge="#343a42"),
}
if REPOSITORY:
    html_theme_options["footer_icons"] = [
        {"name": "Repository", "url": REPOSITORY, "html": "Repository", "class": "repository"}
    ]
pygments_style = "friendly"
pygments_dark_style = "github-dark"
