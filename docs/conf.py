"""Sphinx: how the site looks. `make docs` builds it."""

import tomllib
from pathlib import Path

from making.palette import DARK, LIGHT, Palette

from transept.version import __version__

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
ABOUT = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
REPOSITORY = ABOUT.get("urls", {}).get("Repository")
"""The site links the repository if pyproject.toml names its address."""
SANS = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif'
MONOSPACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'


def variables(palette: Palette) -> dict[str, str]:
    """The palette as custom properties, and furo's own properties in its terms."""
    own = {f"t-{name}": value for name, value in palette._asdict().items() if name != "series"}
    charts = {f"chart-{number}": colour for number, colour in enumerate(palette.series)}
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
    return own | charts | ink | furo


project = "transept"
version = release = __version__
html_title = f"transept {release}"
html_show_copyright = False
smartquotes = False  # it would turn the two dashes of an option into one

extensions = ["myst_parser", "making.mathml"]
myst_enable_extensions = ["dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 4
html_math_renderer = "mathml"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["transept.css"]
html_js_files = ["access.js", "copy.js", "narrow.js"]
html_logo = html_favicon = "_static/logo.svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": variables(LIGHT),
    "dark_css_variables": variables(DARK),
}
if REPOSITORY:
    html_theme_options["footer_icons"] = [
        {"name": "Repository", "url": REPOSITORY, "html": "Repository", "class": "repository"}
    ]
pygments_style = "a11y-high-contrast-light"  # furo installs it
pygments_dark_style = "github-dark"
