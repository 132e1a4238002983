"""Markup as numbered HTML tags, and back.

A text with markup of any format becomes HTML with three tags: `<span id="1">` … `</span>` around
words, `<img id="2">` between words, and `<br id="3">` between sentences.
"""

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Name = Literal["span", "img", "br"]
_TAG = re.compile(r'<(span|img|br) id="(\d+)">|(</span>)')
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Mark(NamedTuple):
    """A part of HTML: text, or a tag."""

    text: str
    opens: int | None = None
    """The number of the tag. None for text and for `</span>`."""
    closes: bool = False


def tag(name: Name, number: int) -> str:
    """An opening tag."""
    return f'<{name} id="{number}">'


def marks(text: str) -> Iterator[Mark]:
    """The parts of a translation: unescaped text and tags, in order."""
    at = 0
    for found in _TAG.finditer(text):
        if found.start() > at:
            yield Mark(html.unescape(text[at : found.start()]))
        number = None if found[2] is None else int(found[2])
        yield Mark("", number, closes=found[3] is not None)
        at = found.end()
    if at < len(text):
        yield Mark(html.unescape(text[at:]))


def escape(text: str) -> str:
    """Escape text for HTML and XML. Characters that XML excludes are removed."""
    return html.escape(_FORBIDDEN.sub("", text), quote=False)
