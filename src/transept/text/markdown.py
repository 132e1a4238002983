"""Markdown as a form of text: CommonMark, with tables and front matter.

markdown-it finds the blocks. What is not the content of a heading, a paragraph or a table cell is
copied: list markers, block quotes, code blocks, HTML blocks, link reference definitions. A line
break inside a paragraph is a space. `markdown_inline` finds the markup inside the content.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from transept.text.inline import InlineSpan
from transept.text.markdown_inline import inline_fragments
from transept.text.markup import LINE_BREAKS, Form, Fragment

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:.*\r?\n)*?\1[ \t]*(?:\r?\n|\Z)")
_CELL = re.compile(r"(?:\\.|[^|\\])+|\\\Z")

PUNCTUATION = r"!-/:-@\[-`{-~"
"""The ASCII punctuation that a backslash escapes."""
_ESCAPED = re.compile(rf"\\[{PUNCTUATION}]|&(?:#[0-9]{{1,7}}|#[xX][0-9a-fA-F]{{1,6}}|\w{{1,32}});")
_SPECIAL = re.compile(
    rf"""\\(?=[{PUNCTUATION}]) | [`|] | <(?=[a-zA-Z/!?]) | &(?=\#?\w+;) | ](?=[(\[:]) | ~(?=~)
    | (?<!\s)\* | \*(?!\s) | (?<!\w)_(?!\s) | (?<!\s)_(?!\w)
    # At the start of a line, these begin a block.
    | \A(?:[-+](?=\s|\Z) | \#(?=\#{{0,5}}(?:\s|\Z)) | [>=]) | (?<=\A\d)[.)](?=\s|\Z)
    """,
    re.VERBOSE,
)


def fragments(text: str) -> Iterator[Fragment]:
    """The text and the markup of a Markdown document."""
    at = 0
    for spans, references in _contents(text):
        yield Fragment(text[at : spans[0].start], "block")
        yield from inline_fragments(text, spans, references)
        at = spans[-1].end
        yield Fragment("", "block")
    yield Fragment(text[at:], "block")


def _contents(text: str) -> Iterator[tuple[list[InlineSpan], Mapping[str, Any]]]:
    """The content of each heading, paragraph and cell, line by line, and the link references."""
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    lines = [InlineSpan(*found.span()) for found in _LINE.finditer(text, begin) if found[0]]
    environment: dict[str, Any] = {}
    tokens = _parser().parse(text[begin:], environment)
    references = environment.get("references", {})
    of_content = [
        (before, token)
        for before, token in pairwise(tokens)
        if token.type == "inline" and token.map and token.content
    ]
    # The cells of a row have the same lines.
    for (first, last), group in groupby(of_content, lambda pair: pair[1].map or [0, 0]):
        found, own = [*group], lines[first:last]
        for spans in _located(text, own, [before for before, _ in found], found[0][1].content):
            yield spans, references


@cache
def _parser() -> "MarkdownIt":
    # Imported here because most texts are not Markdown.
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table").disable("inline")


def _located(
    text: str, lines: Sequence[InlineSpan], opens: "Sequence[Token]", content: str
) -> Iterator[list[InlineSpan]]:
    """Find the content of a block in its lines. Content that is not found is copied."""
    if opens[0].type in ("th_open", "td_open"):
        yield from _cells(text, lines[0], content)
        return
    is_heading = opens[0].type == "heading_open" and opens[0].markup.startswith("#")
    rows, spans = content.split("\n"), []
    if len(rows) != len(lines):
        return
    for row, (start, end) in zip(rows, lines, strict=True):
        line, wanted = text[start:end].rstrip("\r\n"), row.strip()
        at = line.rfind(wanted) if is_heading else len(line.rstrip()) - len(wanted)
        if at < 0 or not line.startswith(wanted, at):
            return
        spans.append(InlineSpan(start + at, start + len(line)))
    last = spans[-1]
    spans[-1] = InlineSpan(last.start, last.start + len(rows[-1].strip()))
    yield spans


def _cells(text: str, line: InlineSpan, first: str) -> Iterator[list[InlineSpan]]:
    """The cells of a row of a table. The content of the first one ends the marks of lists."""
    begin = max(text.find(first, *line), line.start)
    for cell in _CELL.finditer(text, begin, line.end):
        inner = cell[0].strip()
        if inner:
            start = cell.start() + cell[0].index(inner)
            yield [InlineSpan(start, start + len(inner))]


def _read(escaped: str) -> str:
    return escaped[1] if escaped.startswith("\\") else html.unescape(escaped)


def escape(text: str) -> str:
    """Escape characters that Markdown would interpret."""
    return _SPECIAL.sub(r"\\\g<0>", text)


MARKDOWN = Form(fragments, LINE_BREAKS, _ESCAPED, _read, escape)
