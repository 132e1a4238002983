"""Plain text as a form of text. Words may be within `**asterisks**` or `<b>tags</b>`.

Messages have the former, and texts of programs the latter.
"""

import re
from collections.abc import Iterator

from transept.text.markup import Form, Fragment

MAY_BE_MARKED = re.compile(r"\*|</")
"""Matches somewhere in every text with markup."""
_MARK = re.compile(
    # Code and URLs are copied. An asterisk between words, as in 2*3*4, emphasizes nothing.
    r"""`[^`\n]*` | \w{1,20}://[^\s<]* | (?P<line>\n)
    | <(?P<opens>[A-Za-z\d][\w.-]*)(?:\s[^<>\n]*)?(?<!/)> | </(?P<closes>[A-Za-z\d][\w.-]*)>
    | (?<!\*)(?P<stars>\*{1,3})(?!\*)""",
    re.VERBOSE,
)
_NEAR = 8
"""How many marks without a partner may be between two that belong together."""


def is_marked(text: str) -> bool:
    """Whether a text has words within asterisks or tags.

    Example:
        >>> is_marked("Do **not** enter."), is_marked("2*3*4 **kwargs <user>")
        (True, False)
    """
    return bool(MAY_BE_MARKED.search(text)) and next(_pairs(text), None) is not None


def fragments(text: str) -> Iterator[Fragment]:
    """The text, and the marks around words."""
    marks = []
    for number, (opening, closing) in enumerate(_pairs(text)):
        for found in (opening, closing):
            mark = Fragment(found[0], "inline", f"#{number}", closes=found is closing)
            marks.append((found.start(), mark))
    at = 0
    for start, mark in sorted(marks):
        yield Fragment(text[at:start])
        yield mark
        at = start + len(mark.raw)
    yield Fragment(text[at:])


def _pairs(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """The marks of a line that belong together. Pairs may be inside others."""
    waiting: list[re.Match[str]] = []
    for found in _MARK.finditer(text):
        if found["line"]:
            waiting.clear()
        closes, opens = found["closes"], found["opens"]
        if stars := found["stars"]:
            start, end = found.span()
            before, after = text[start - 1 : start], text[end : end + 1]
            closes = None if before.isspace() or after.isalnum() else stars
            opens = None if before.isalnum() or after.isspace() else stars
        near = [one["opens"] or one["stars"] for one in waiting[-_NEAR:]]
        if closes in near:
            del waiting[len(waiting) - near[::-1].index(closes) :]
            yield waiting.pop(), found
        elif opens:
            waiting.append(found)


PLAIN = Form(fragments, {}, re.compile("(?!)"), str, str)
