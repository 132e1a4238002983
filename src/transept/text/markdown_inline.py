"""The markup inside a paragraph of Markdown: emphasis, links, code, HTML tags and more.

Emphasis and links are elements around words. Code, images, URLs and footnote marks stand alone. The
rules for emphasis are those of CommonMark.
"""

import re
from bisect import bisect
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple
from unicodedata import category

from transept.text.html import MARKUP, markup_fragment
from transept.text.inline import InlineSpan
from transept.text.markup import Fragment

_BEGINNING = re.compile(r"\[[ xX]](?=\s)\s*|\[\^[^]\s]+]:\s*|\[!\w+]\s*")
"""A check box, the mark of a footnote, or the kind of an alert, before the text of a paragraph."""
_MARKUP = re.compile(
    r"""(?P<escape>\\[!-/:-@\[-`{-~])
    | (?P<block>[ ]{2,}\n | \\\n | ^:::.*$ | ^\([\w-]+\)=$)
    | (?P<inline><[a-zA-Z][\w+.-]{1,31}:[^\s<>]*> | <[\w.+-]+@[\w.-]+>
      | (?:https?://|www\.)[^\s<>]*[^\s<>?!.,:;*_~'"`)\]]
      | \[\^[^]\s]+] | \{[#.][^{}\n]*})
    | (?P<code>(?:\{[\w:.+-]+})?(?P<ticks>`+)) | (?P<html><) | (?P<open>!?\[) | (?P<close>])
    | (?P<run>\*+|_+|~~) | (?P<newline>\n)
    """,
    re.VERBOSE | re.MULTILINE,
)
_DESTINATION = re.compile(
    r"""\(\s*(?:<[^<>\n]*>|[^\s()<>]*(?:\([^\s()]*\)[^\s()]*)*)
    (?:\s+(?:"(?:\\.|[^"\\]){0,999}"|'(?:\\.|[^'\\]){0,999}'|\((?:\\.|[^()\\]){0,999}\)))?\s*\)""",
    re.VERBOSE | re.DOTALL,
)
_LABEL = re.compile(r"\[([^\[\]]{0,999})]")


def inline_fragments(
    document: str, spans: Sequence[InlineSpan], references: Container[str]
) -> Iterator[Fragment]:
    """The text and the markup of a paragraph.

    Args:
        document: The document.
        spans: The paragraph's part of each line.
        references: The labels that are defined as links, in upper case.
    """
    rows = [document[slice(*span)] for span in spans]
    text = "\n".join(rows)
    starts = [0, *accumulate(len(row) + 1 for row in rows[:-1])]

    def place(at: int) -> int:
        """The offset in the document of an offset in the paragraph."""
        row = bisect(starts, at) - 1
        return spans[row].start + at - starts[row]

    at = 0
    for mark in sorted(_Paragraph(text, references).marks()):
        yield Fragment(document[place(at) : place(mark.start)])
        at = mark.end
        fragment = mark.fragment
        if "\n" in fragment.raw:
            moved = (fragment.moved or fragment.raw).replace("\n", " ")
            fragment = fragment._replace(raw=document[place(mark.start) : place(at)], moved=moved)
        yield fragment
    yield Fragment(document[place(at) : spans[-1].end])


class _Mark(NamedTuple):
    """Markup, and its offsets in the paragraph."""

    start: int
    end: int
    fragment: Fragment


class _Bracket(NamedTuple):
    """An opening bracket, and the numbers of marks and delimiters before it."""

    start: int
    end: int
    is_image: bool
    n_marks: int
    n_runs: int


@dataclass(slots=True)
class _Delimiters:
    """A run of `*`, `_` or `~~`. It may close elements from its start, and open some at its end."""

    start: int
    end: int
    character: str
    length: int
    can_open: bool
    can_close: bool

    @property
    def left(self) -> int:
        """The number of characters that do not belong to an element yet."""
        return self.end - self.start

    @property
    def kind(self) -> tuple[str, bool, int]:
        """Runs of the same kind can close the same elements."""
        return self.character, self.can_open, self.length % 3

    def may_end_at(self, closer: "_Delimiters") -> bool:
        """Whether an element of this run can end at a later one."""
        if self.character != closer.character:
            return False
        # So that `*a**b*` is one element.
        either = self.can_close or closer.can_open
        multiple = (self.length + closer.length) % 3 == 0
        return not (either and multiple and closer.length % 3)


class _Paragraph:
    """Finds the markup of a paragraph in one pass, and then the emphasis."""

    def __init__(self, text: str, references: Container[str]) -> None:
        self._text, self._references = text, references
        self._marks: list[_Mark] = []
        self._runs: list[_Delimiters] = []
        self._brackets: list[_Bracket] = []
        self._unclosed: set[str] = set()
        """Backticks that no equal run follows."""
        self._n_elements = 0

    def marks(self) -> list[_Mark]:
        """All markup, in any order."""
        beginning = _BEGINNING.match(self._text)
        at = self._mark(0, beginning.end(), "block") if beginning else 0
        while found := _MARKUP.search(self._text, at):
            at = self._handle(found)
        self._emphasize(self._runs)
        return self._marks

    def _handle(self, found: re.Match[str]) -> int:
        """Handle markup. Return the offset after it."""
        start, end = found.span()
        match found.lastgroup:
            case "block" | "inline" as role:
                return self._mark(start, end, role)
            case "newline":
                self._marks.append(_Mark(start, end, Fragment("\n")))
            case "code":
                return self._code(start, end, found["ticks"])
            case "html":
                return self._html(start)
            case "open":
                counts = len(self._marks), len(self._runs)
                self._brackets.append(_Bracket(start, end, end - start == 2, *counts))
            case "close":
                return self._close(start)
            case "run":
                self._runs.append(_delimiters(self._text, start, end))
        return end

    def _mark(self, start: int, end: int, role: str, element: str | None = None) -> int:
        text = self._text[start:end]
        kind: Literal["block", "inline"] = "block" if role == "block" else "inline"
        self._marks.append(_Mark(start, end, Fragment(text, kind, element, role == "close")))
        return end

    def _code(self, start: int, end: int, ticks: str) -> int:
        if ticks in self._unclosed:
            return end
        closing = re.compile(f"(?<!`){ticks}(?!`)").search(self._text, end)
        if closing is None:
            self._unclosed.add(ticks)
            return end
        return self._mark(start, closing.end(), "inline")

    def _html(self, start: int) -> int:
        found = MARKUP.match(self._text, start)
        if found is None:
            return start + 1
        self._marks.append(_Mark(start, found.end(), markup_fragment(found[0])))
        return found.end()

    def _close(self, start: int) -> int:
        """Handle a closing bracket: the end of a link or an image, or text."""
        if not self._brackets:
            return start + 1
        bracket = self._brackets.pop()
        label = self._text[bracket.end : start]
        end, moved = self._target(start + 1, label)
        if end is None:
            return start + 1
        runs = self._runs[bracket.n_runs :]
        del self._runs[bracket.n_runs :]
        if bracket.is_image:
            del self._marks[bracket.n_marks :]
            return self._mark(bracket.start, end, "inline")
        self._emphasize(runs)
        element = self._new_element()
        self._mark(bracket.start, bracket.end, "open", element)
        closing = Fragment(self._text[start:end], "inline", element, closes=True, moved=moved)
        self._marks.append(_Mark(start, end, closing))
        # A link does not contain a link.
        self._brackets = [one for one in self._brackets if one.is_image]
        return end

    def _target(self, at: int, label: str) -> tuple[int | None, str | None]:
        """The end of a link's target, and how to write it if the text of the link changes."""
        if found := _DESTINATION.match(self._text, at):
            return found.end(), None
        found = _LABEL.match(self._text, at)
        named = found[1] if found else ""
        if _normalized(named or label) not in self._references:
            return None, None
        return found.end() if found else at, None if named else f"][{label}]"

    def _emphasize(self, runs: Sequence[_Delimiters]) -> None:
        """Find pairs of delimiters. Each closes the nearest one before it that fits."""
        openers: list[_Delimiters] = []
        searched: dict[tuple[str, bool, int], int] = {}
        """The number of openers that do not fit closers of a kind."""
        for closer in runs:
            while closer.can_close and closer.left:
                bottom = searched.get(closer.kind, 0)
                places = range(len(openers) - 1, bottom - 1, -1)
                found = next((n for n in places if openers[n].may_end_at(closer)), None)
                if found is None:
                    searched[closer.kind] = len(openers)
                    break
                del openers[found + 1 :]
                self._pair(openers[found], closer)
                if not openers[found].left:
                    openers.pop()
                searched = {kind: min(n, len(openers)) for kind, n in searched.items()}
            if closer.can_open and closer.left:
                openers.append(closer)

    def _pair(self, opener: _Delimiters, closer: _Delimiters) -> None:
        length = 2 if min(opener.left, closer.left) >= 2 else 1
        element = self._new_element()
        self._mark(opener.end - length, opener.end, "open", element)
        self._mark(closer.start, closer.start + length, "close", element)
        opener.end -= length
        closer.start += length

    def _new_element(self) -> str:
        self._n_elements += 1
        return f"#{self._n_elements}"


def _normalized(label: str) -> str:
    return " ".join(label.split()).lower().upper()


def _delimiters(text: str, start: int, end: int) -> _Delimiters:
    """A run, and whether it can open and close an element, by CommonMark's rules."""
    before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
    opens = not after.isspace() and (not _is_punctuation(after) or _is_edge(before))
    closes = not before.isspace() and (not _is_punctuation(before) or _is_edge(after))
    if text[start] == "_":
        opens, closes = (
            opens and (not closes or _is_punctuation(before)),
            closes and (not opens or _is_punctuation(after)),
        )
    return _Delimiters(start, end, text[start], end - start, opens, closes)


def _is_punctuation(character: str) -> bool:
    return category(character)[0] in "PS"


def _is_edge(character: str) -> bool:
    return character.isspace() or _is_punctuation(character)
