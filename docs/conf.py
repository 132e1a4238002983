"""Sphinx: how the site looks. `make docs` builds it."""

from transept.version import __version__

project = "transept"
version = release = __version__
html_title = "transept"
html_show_copyright = False

extensions = ["myst_parser"]
myst_heading_anchors = 4

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["transept.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#5b3a94", "color-brand-content": "#5b3a94"},
    "dark_css_variables": {"color-brand-primary": "#b79cec", "color-brand-content": "#b79cec"},
}
pygments_style = "friendly"
