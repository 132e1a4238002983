"""Pictures of a page: figures with a caption, and charts written into the page.

`![alt](path "caption")` alone on a line becomes a figure. A chart, which is an SVG file of the
class `chart`, becomes part of the page, so that it follows the theme that the reader chose.
"""

import re
from html import escape
from pathlib import Path

from making.charts import COLOURS

PICTURE = re.compile(r'^!\[([^\]]*)\]\((\S+?)(?: "([^"]*)")?\)$', re.MULTILINE)
CODE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)


def with_pictures(page: Path) -> str:
    """The text of a page, with its pictures as figures."""
    text = page.read_text(encoding="utf-8")
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [_replaced(text[end : code.start()], page), code[0]]
        end = code.end()
    return "".join([*parts, _replaced(text[end:], page)])


def _replaced(text: str, page: Path) -> str:
    return PICTURE.sub(lambda found: _figure(page, found[1], found[2], found[3] or ""), text)


def _figure(page: Path, alt: str, path: str, caption: str) -> str:
    file = page.parent / path
    if file.suffix == ".svg" and is_chart(drawing := file.read_text(encoding="utf-8")):
        return inlined(drawing, alt, caption)
    below = f"\n\n{caption}" if caption else ""
    return f"```{{figure}} {path}\n:alt: {alt}{below}\n```"


def is_chart(drawing: str) -> bool:
    """Whether an SVG file takes its colours from the page."""
    return 'class="chart"' in drawing[:400]


def inlined(drawing: str, alt: str, caption: str) -> str:
    """A chart as part of the page. Its accessible name is the text that describes it."""
    named = re.sub(r'aria-label="[^"]*"', f'aria-label="{escape(alt)}"', drawing, count=1)
    named = re.sub(r"<title>[^<]*</title>\n", "", named, count=1).replace(COLOURS, "")
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'```{{raw}} html\n<figure class="plot">\n{named.strip()}\n{below}</figure>\n```'
