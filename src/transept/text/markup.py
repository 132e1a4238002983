"""Split a document into sentences, and the markup between and inside them.

A `Form` finds the text and the markup of a document: `plain`, `html` and `markdown`. Block
markup separates sentences. Inline markup may be inside a sentence: see `inline`.
"""

import re
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Literal, NamedTuple

from transept.text.inline import Element, InlineSpan
from transept.text.sentences import Piece, has_letters

AT = attrgetter("at")
_MOST_TAGS = 64
"""The maximum number of tags inside a sentence. A sentence with more is split at each tag."""

_SPACES = re.compile(r"[ \t\n\r\f\xa0\u2007\u2009\u202f]+")
_INVISIBLE = dict.fromkeys(map(ord, "\xad\u200b\u2060\ufeff"))
LINE_BREAKS = dict.fromkeys(map(ord, "\t\n\r\f\v\x1c\x1d\x1e\x85\u2028\u2029"), " ")
"""In HTML and Markdown, line breaks and tabs are ordinary spaces: they do not end a sentence."""


class Fragment(NamedTuple):
    """A part of a document: text, or markup, which is copied."""

    raw: str
    """How the document writes it."""
    role: Literal["text", "inline", "block"] = "text"
    element: str | None = None
    """The element that inline markup opens or closes. None: the markup stands alone."""
    closes: bool = False
    moved: str | None = None
    """How it is written in a translated sentence, if not as in the document."""


class Form(NamedTuple):
    """A format of documents."""

    fragments: Callable[[str], Iterable[Fragment]]
    """The text and the markup of a document, in order. Joined, they are the document."""
    breaks: Mapping[int, str]
    """Replacements for line breaks that do not end a sentence."""
    escaped: re.Pattern[str]
    """Matches characters that text writes in another way, such as `&amp;`."""
    read: Callable[[str], str]
    """Unescapes a match."""
    write: Callable[[str], str]
    """Escapes the output of a model."""


class MarkupPart(NamedTuple):
    """A sentence, the space and markup up to the next one, and the markup inside it."""

    text: str
    """The sentence without markup, with single spaces."""
    space: str
    inside: tuple[Element, ...] = ()
    raw: str = ""
    """The sentence as the document writes it."""


Splitter = Callable[[str], Sequence[Piece]]
"""Splits text without markup into sentences."""


# --- splitting -------------------------------------------------------------------------------


def split_markup(document: str, form: Form, split: Splitter) -> list[MarkupPart]:
    """The sentences of a document, each with the space and markup between it and the next.

    Only the first part may have no sentence. The raw sentences and their spaces, joined, are the
    document.
    """
    parts: list[MarkupPart] = []
    run = _Run(form)
    for fragment in form.fragments(document):
        if fragment.role == "text":
            run.add_text(fragment)
        elif fragment.role == "inline":
            run.add_tag(fragment)
        else:
            _extend(parts, [*run.parts(split), MarkupPart("", fragment.raw)])
            run = _Run(form)
    _extend(parts, run.parts(split))
    return parts


def text_of(document: str, form: Form) -> str:
    """The text of a document without its markup."""
    found = (one.raw for one in form.fragments(document) if one.role == "text")
    return " ".join(form.escaped.sub(lambda escaped: form.read(escaped[0]), raw) for raw in found)


def _extend(parts: list[MarkupPart], more: Iterable[MarkupPart]) -> None:
    """Append parts. A part without text is merged into the previous part, if there is one."""
    for part in more:
        if part.text or (part.space and not parts):
            parts.append(part)
        elif part.space:
            parts[-1] = parts[-1]._replace(space=parts[-1].space + part.space)


class _Tag(NamedTuple):
    """Inline markup, and its offset in the text of the run."""

    at: int
    fragment: Fragment

    @property
    def markup(self) -> str:
        """How it is written in a translated sentence."""
        fragment = self.fragment
        return fragment.raw if fragment.moved is None else fragment.moved


class _Run:
    """The text between two pieces of block markup, and the inline markup in it."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._texts: list[str] = []
        self._raw: list[str] = []
        """How the document writes each character of the text."""
        self._tags: list[_Tag] = []

    def add_text(self, fragment: Fragment) -> None:
        if fragment.moved is not None:
            self._add(fragment.moved, [fragment.raw, *[""] * (len(fragment.moved) - 1)])
            return
        text, written = _unescaped(fragment.raw, self._form)
        self._add(text, written)

    def add_tag(self, fragment: Fragment) -> None:
        self._tags.append(_Tag(len(self._raw), fragment))

    def _add(self, text: str, written: Sequence[str]) -> None:
        self._texts.append(text)
        self._raw += written

    def parts(self, split: Splitter) -> Iterator[MarkupPart]:
        """A part without text for everything before the first sentence, then the sentences."""
        plain = "".join(self._texts).translate(self._form.breaks)
        partners = _partners(self._tags)
        sentences: list[tuple[InlineSpan, list[int]]] = []
        for span in _sentences(plain, split):
            inside = self._inside(span, partners)
            if inside is None:
                sentences += ((piece, []) for piece in self._cut(span, plain))
            else:
                sentences.append((span, inside))
        taken = {number for _, inside in sentences for number in inside}
        spaces = self._spaces([span for span, _ in sentences], taken)
        yield MarkupPart("", next(spaces))
        for (span, inside), space in zip(sentences, spaces, strict=True):
            tags = [self._tags[number] for number in inside]
            text, elements = _sentence(plain, span, tags)
            yield MarkupPart(text, space, elements, self._written(span, tags))

    def _spaces(self, sentences: Sequence[InlineSpan], taken: set[int]) -> Iterator[str]:
        """The text and the remaining tags before, between and after the sentences."""
        tags = [tag for number, tag in enumerate(self._tags) if number not in taken]
        first = 0
        ends = [0, *(span.end for span in sentences)]
        starts = [*(span.start for span in sentences), len(self._raw)]
        for span in map(InlineSpan, ends, starts):
            last = bisect(tags, span.end, key=AT)
            yield self._written(span, tags[first:last])
            first = last

    def _written(self, span: InlineSpan, tags: Iterable[_Tag]) -> str:
        """A span of the text with tags in it, as the document writes it."""
        written, at = "", span.start
        for tag in tags:
            written += "".join(self._raw[at : tag.at]) + tag.fragment.raw
            at = tag.at
        return written + "".join(self._raw[at : span.end])

    def _inside(self, span: InlineSpan, partners: Mapping[int, int]) -> list[int] | None:
        """The numbers of the tags that move with words of a sentence.

        None means that the sentence must be split at its tags: there are too many, or only one of
        the two tags of an element is in the sentence.
        """
        first = bisect_left(self._tags, span.start, key=AT)
        last = bisect(self._tags, span.end, key=AT)
        inside = []
        deepest = -1  # the last tag of the elements seen so far
        for number in range(first, last):
            here = self._tags[number].at
            other = partners.get(number, -1)
            if first <= other < last:
                start, end = sorted((here, self._tags[other].at))
                is_around_all = (start, end) == span
                is_within = start < span.end and end > span.start and not is_around_all
                if is_within or number < deepest:
                    inside.append(number)
                    deepest = max(deepest, other)
            elif span.start < here < span.end or number < deepest:
                return None
        return inside if len(inside) <= _MOST_TAGS else None

    def _cut(self, span: InlineSpan, plain: str) -> Iterator[InlineSpan]:
        """The spans of a sentence between its tags."""
        first = bisect(self._tags, span.start, key=AT)
        last = bisect_left(self._tags, span.end, key=AT)
        offsets = [span.start, *(tag.at for tag in self._tags[first:last]), span.end]
        for start, end in pairwise(offsets):
            if has_letters(plain[start:end]):
                yield _without_spaces(plain, InlineSpan(start, end))


def _without_spaces(text: str, span: InlineSpan) -> InlineSpan:
    start = span.end - len(text[slice(*span)].lstrip())
    return InlineSpan(start, start + len(text[start : span.end].rstrip()))


def _partners(tags: Sequence[_Tag]) -> dict[int, int]:
    """Map each tag to the other tag of its element. A standalone tag is its own partner.

    A tag whose other half is missing is not in the result.
    """
    partners: dict[int, int] = {}
    unfinished: list[int] = []
    for number, tag in enumerate(tags):
        element = tag.fragment.element
        if element is None:
            partners[number] = number
        elif not tag.fragment.closes:
            unfinished.append(number)
        elif unfinished and tags[unfinished[-1]].fragment.element == element:
            begun = unfinished.pop()
            partners |= {begun: number, number: begun}
    return partners


def _unescaped(raw: str, form: Form) -> tuple[str, list[str]]:
    """Unescape text. Also returns how the document writes each character of the result."""
    texts, written, at = list[str](), list[str](), 0
    for found in form.escaped.finditer(raw):
        text = form.read(found[0]) or found[0]
        texts += raw[at : found.start()], text
        written += [*raw[at : found.start()], found[0], *[""] * (len(text) - 1)]
        at = found.end()
    return "".join([*texts, raw[at:]]), [*written, *raw[at:]]


def _sentences(plain: str, split: Splitter) -> Iterator[InlineSpan]:
    """The sentences with a letter or a digit."""
    at = 0
    for text, space in split(plain):
        if has_letters(text):
            yield InlineSpan(at, at + len(text))
        at += len(text) + len(space)


def _sentence(
    plain: str, span: InlineSpan, tags: Sequence[_Tag]
) -> tuple[str, tuple[Element, ...]]:
    """A sentence with single spaces, and its elements with their offsets in that text."""
    text, at = "", span.start
    opened: list[tuple[_Tag, int]] = []
    levels: list[list[Element]] = [[]]
    for tag, following in pairwise([*tags, None, None]):
        here = span.end if tag is None else tag.at
        more = _normalized(plain[at:here])
        text += more[1:] if text.endswith(" ") and more.startswith(" ") else more
        at = here
        if tag is None:
            continue
        is_last = following is None or following.at > here
        before_space = is_last and plain[here : here + 1].isspace()
        if tag.fragment.element is None:
            levels[-1].append(_alone(tag.markup, len(text), before_space))
        elif not tag.fragment.closes:
            opened.append((tag, len(text)))
            levels.append([])
        else:
            (begun, start), inner = opened.pop(), tuple(levels.pop())
            around = _without_spaces(text, InlineSpan(start, len(text)))
            if around.start < around.end:
                levels[-1].append(Element(begun.markup, tag.markup, *around, inner))
            else:
                tags_inside = "".join(one.open + " " * one.before_space for one in inner)
                markup = begun.markup + tags_inside + tag.markup
                levels[-1].append(_alone(markup, start, before_space))
    return text, tuple(levels[0])


def _alone(markup: str, at: int, before_space: bool) -> Element:
    return Element(markup, "", at, at, before_space=before_space)


def _normalized(text: str) -> str:
    """Normalize spaces and remove invisible characters, as in the training data."""
    return _SPACES.sub(" ", text.translate(_INVISIBLE))
