"""Extracts the sentences of a file from their markup: lines in, lines out."""

import re
from collections.abc import Callable, Iterator

from transept.data.fetching.datasets import Reading
from transept.errors import DataError

Lines = Iterator[bytes]

_SEGMENT = re.compile(rb"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
_TITLE = re.compile(rb"</?(?:title|description)>")
_TAGGED = re.compile(
    rb"\s*<(?:url|talkid|keywords|speaker|reviewer|translator|doc|/doc|/?transcript)\b"
)
# `&amp;` is last, so that `&amp;lt;` yields `&lt;` and not `<`.
_ENTITIES = (
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b'"'),
    (b"&apos;", b"'"),
    (b"&amp;", b"&"),
)


def sentences(lines: Lines, reading: Reading) -> Lines:
    """Return the sentences in the raw `lines` of a file, without end-of-line characters."""
    return _READERS[reading](lines)


def _plain(lines: Lines) -> Lines:
    return (line.removesuffix(b"\r") for line in lines)


def _segments(lines: Lines) -> Lines:
    """The `<seg>` elements of WMT's SGML and IWSLT's XML, which need not be well-formed."""
    for line in lines:
        for match in _SEGMENT.finditer(line):
            text = match[1]
            for entity, character in _ENTITIES:
                text = text.replace(entity, character)
            yield b" ".join(text.split())


def _talks(lines: Lines) -> Lines:
    """IWSLT's training files: titles and descriptions are sentences, other tagged lines are not."""
    for line in lines:
        if not _TAGGED.match(line):
            yield _TITLE.sub(b"", line).strip()


def _column(index: int) -> Callable[[Lines], Lines]:
    def read(lines: Lines) -> Lines:
        for number, line in enumerate(lines, start=1):
            columns = line.removesuffix(b"\r").split(b"\t")
            if len(columns) < 2:
                raise DataError(f"line {number} has no tab between two sentences: {line[:80]!r}")
            yield columns[index]

    return read


_READERS: dict[Reading, Callable[[Lines], Lines]] = {
    "lines": _plain,
    "segments": _segments,
    "talks": _talks,
    "first column": _column(0),
    "second column": _column(1),
}
