"""Equations: LaTeX in the pages, MathML on the site.

A page has `$…$` and `$$…$$`, which notebooks and code hosts show as well. The site has MathML,
written when it is built. Browsers lay it out themselves, without a script.
"""

from typing import Any

from latex2mathml.converter import convert


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer of equations with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, _leave), (_display, _leave))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(convert(node.astext()))
    _skip()


def _display(translator: Any, node: Any) -> None:
    # A wide equation scrolls on a narrow screen. The keyboard can scroll it too.
    equation = convert(node.astext(), display="block")
    translator.body.append(f'<div class="equation" tabindex="0">{equation}</div>\n')
    _skip()


def _skip() -> None:
    from docutils.nodes import SkipNode

    raise SkipNode


def _leave(translator: Any, node: Any) -> None:
    """Nothing follows an equation."""
