"""Split plain text or HTML into sentences, and assemble the translation.

Markup is not interpreted: everything from `<` to `>` is copied character for character. Text is
unescaped, translated and escaped again, so that a model cannot output markup. Block-level tags,
such as `<p>`, separate sentences. Inline tags, such as `<b>`, may be inside a sentence: see
`inline`. An emoji is kept like a standalone tag, in plain text too.
"""

import html
import re
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from transept.api.texts import NOTHING, Draft, Output, Sentence, Translation
from transept.apps.serve.inline import Element, InlineSpan, escape, has_letters, transfer
from transept.text.moses import Language
from transept.text.sentences import split_sentences

Outputs = tuple[Output, ...]
AT = attrgetter("at")

# Only two parts of this pattern match beyond the next `<`: a quoted value, which ends where another
# could begin, and an element that is kept up to its end tag. So matching takes time proportional to
# the length of any text.
_MARKUP = re.compile(
    r"""<!---?> | <!--.*?(?:-->|\Z)
    # Elements that are copied with their content: elements that are not prose, footnote numbers,
    # and elements marked as not to be translated.
    | <(script|style|code|pre|textarea|svg|math)(?=[\s>])
      (?:[^"'<>/]|/(?!>)|"[^"]*"|'[^']*')*+>.*?(?:</\1\s*>|\Z)
    | <sup(?=[\s>])[^<>]*>(?:<(?!/sup)[^<>]*>|\d|[^<>\w]){0,40}+</sup\s*>
    | <(?P<kept>[a-z][a-z0-9-]*)(?=\s[^<>]*?
        (?:\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*(?:"[^"<>]*|'[^'<>]*)?\bnotranslate\b))
      [^<>]*>[^<>]*</(?P=kept)\s*>
    # A tag. A quoted value may contain any character. A tag may also have an unpaired quotation
    # mark, so the second form ignores quotes.
    | <[/!?]?[a-z](?:[^"'<>]|"[^"]*"|'[^']*')*+>
    | <[/!?]?[a-z][^<>]*>
    """,
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_WHOLE = re.compile(r"<([a-z][a-z0-9-]*)\b.*</\1\s*>", re.DOTALL | re.IGNORECASE)
_NAME = re.compile(r"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
_AROUND_WORDS = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font",
    "i", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "time", "tt", "u", "var",
})  # fmt: skip
_BETWEEN_WORDS = frozenset({"img", "wbr", "script", "style", "code", "svg", "math"})
_MOST_TAGS = 64
"""The maximum number of tags inside a sentence. A sentence with more is split at each tag."""

# These characters are rare in training data, and a model produces nonsense for a sentence with one.
# Arrows and other characters of ordinary text are not included.
_EMOJI = re.compile(
    "(?:[0-9#*]\ufe0f?\u20e3"  # a keycap
    "|[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
    # Variation selectors, joiners, and the tag characters of flags.
    "[\u200d\u20e3\ufe0e\ufe0f\U000e0020-\U000e007f]*)+"
)

_SPACES = re.compile(r"[ \t\n\r\f\xa0\u2007\u2009\u202f]+")
_INVISIBLE = dict.fromkeys(map(ord, "\xad\u200b\u2060\ufeff"))
# In HTML, line breaks and tabs are ordinary spaces: they do not end a sentence.
_LINE_BREAKS = dict.fromkeys(map(ord, "\t\n\r\f\v\x1c\x1d\x1e\x85\u2028\u2029"), " ")


class Form(NamedTuple):
    """The format of a text: HTML or plain."""

    markup: re.Pattern[str]
    """Matches the parts that are copied unchanged."""
    breaks: Mapping[int, str]
    """Replacements for line breaks that do not end a sentence."""
    read: Callable[[str], str]
    """Unescapes text that is not markup."""
    write: Callable[[str], str]
    """Escapes the output of a model."""


HTML = Form(_MARKUP, _LINE_BREAKS, html.unescape, escape)
PLAIN = Form(re.compile("(?!)"), {}, str, str)


class MarkupPart(NamedTuple):
    """A sentence, the space and markup up to the next one, and the markup inside it."""

    text: str
    space: str
    inside: tuple[Element, ...] = ()


@dataclass(frozen=True)
class Text:
    """A text as a list of parts: sentences, and the whitespace and markup between them."""

    source: str
    parts: tuple[MarkupPart, ...]
    form: Form

    @classmethod
    def of(cls, source: str, form: str, language: str) -> "Text":
        """Split a text by the rules of its language."""
        rules: Language = language if language in ("de", "en", "fr") else "other"  # type: ignore[assignment]
        how = HTML if form == "html" else PLAIN
        return cls(source, tuple(_split(source, how, rules)), how)

    @property
    def sentences(self) -> list[str]:
        """The sentences to translate."""
        return [part.text for part in self.with_words]

    @property
    def with_words(self) -> list[MarkupPart]:
        """The parts that contain a sentence."""
        return [part for part in self.parts if part.text]

    @property
    def is_marked(self) -> bool:
        """Whether a sentence contains markup or emoji. Placing them requires word alignments."""
        return any(part.inside for part in self.parts)

    def assemble(self, outputs: Sequence[Outputs], n_best: int) -> Translation:
        """The best combinations of the sentences' outputs, with the parts between them."""
        each = iter(outputs)
        sentences = [
            Sentence(part.text, part.space, self._written(part, next(each)))
            if part.text
            else Sentence("", part.space, (NOTHING,))
            for part in self.parts
        ]
        return Translation.best(self.source, sentences, n_best)

    def before_next(self, outputs: Sequence[Outputs]) -> str:
        """The translation up to the next sentence, from the outputs of the sentences before it."""
        at = [index for index, part in enumerate(self.parts) if part.text][len(outputs)]
        parts = (*self.parts[:at], MarkupPart(self.parts[at].text, ""))
        begun = Text(self.source, parts, self.form)
        return begun.assemble([*outputs, (NOTHING,)], 1).text

    def drafted(self, before: str, draft: Draft) -> Draft:
        """A draft of the whole text, from the text before a sentence and the sentence's draft."""
        stable = draft.text[: draft.stable]
        write = self.form.write
        return Draft(before + write(draft.text), len(before) + len(write(stable)))

    def _written(self, part: MarkupPart, outputs: Outputs) -> Outputs:
        return tuple(replace(one, text=self._marked(part, one), alignment=None) for one in outputs)

    def _marked(self, part: MarkupPart, output: Output) -> str:
        """The escaped translation of a part, with the part's inline markup."""
        if not part.inside:
            return self.form.write(output.text)
        links = output.alignment or ()
        return transfer(part.text, part.inside, output.text, links, self.form.write)


def text_of(markup: str) -> str:
    """The text of an HTML document, without markup and without elements that are copied whole."""
    pieces = _pieces(markup, _MARKUP)
    return " ".join(html.unescape(piece) for is_markup, piece in pieces if not is_markup)


# --- splitting -------------------------------------------------------------------------------


def _split(text: str, form: Form, language: Language) -> list[MarkupPart]:
    """The sentences, each with the whitespace and markup between it and the next."""
    parts: list[MarkupPart] = []
    run = _Run(form)
    for is_markup, piece in _pieces(text, form.markup):
        if not is_markup:
            run.add_text(form.read(piece))
        elif _is_inline(piece):
            run.add_tag(piece)
        else:
            _extend(parts, [*run.parts(language), MarkupPart("", piece)])
            run = _Run(form)
    _extend(parts, run.parts(language))
    return parts


def _pieces(text: str, kept: re.Pattern[str]) -> Iterator[tuple[bool, str]]:
    """Split a text at the matches of a pattern. Yields whether each piece is a match, and it."""
    at = 0
    for found in kept.finditer(text):
        yield False, text[at : found.start()]
        yield True, found[0]
        at = found.end()
    yield False, text[at:]


def _is_inline(markup: str) -> bool:
    """Whether markup may be inside a sentence."""
    name = _NAME.match(markup)
    if name is None:
        return markup.startswith("<!--")
    return name[2].lower() in (_AROUND_WORDS if name[1] else _AROUND_WORDS | _BETWEEN_WORDS)


def _extend(parts: list[MarkupPart], more: Iterable[MarkupPart]) -> None:
    """Append parts. A part without text is merged into the previous part, if there is one."""
    for part in more:
        if part.text or (part.space and not parts):
            parts.append(part)
        elif part.space:
            parts[-1] = parts[-1]._replace(space=parts[-1].space + part.space)


class _Tag(NamedTuple):
    """An emoji or inline markup, and its offset in the text of the run."""

    at: int
    markup: str

    @property
    def element(self) -> str | None:
        """The name of the element that it opens or closes. None for a standalone tag."""
        name = _NAME.match(self.markup)
        is_whole = self.markup.endswith("/>") or _WHOLE.fullmatch(self.markup)
        if name is None or is_whole or name[2].lower() in _BETWEEN_WORDS:
            return None
        return name[2].lower()

    @property
    def closes(self) -> bool:
        return self.markup.startswith("</")


class _Run:
    """The text between two block-level tags, and the inline tags and emoji in it."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._texts: list[str] = []
        self._length = 0
        self._tags: list[_Tag] = []

    def add_text(self, text: str) -> None:
        for is_emoji, piece in _pieces(text, _EMOJI):
            if is_emoji:
                self.add_tag(piece)
            else:
                self._texts.append(piece)
                self._length += len(piece)

    def add_tag(self, markup: str) -> None:
        self._tags.append(_Tag(self._length, markup))

    def parts(self, language: Language) -> Iterator[MarkupPart]:
        """A part without text for everything before the first sentence, then the sentences."""
        text = "".join(self._texts)
        plain = text.translate(self._form.breaks)
        partners = _partners(self._tags)
        sentences: list[tuple[InlineSpan, list[int]]] = []
        for span in _sentences(plain, language):
            inside = self._inside(span, partners)
            if inside is None:
                sentences += ((piece, []) for piece in self._cut(span, plain))
            else:
                sentences.append((span, inside))
        taken = {number for _, inside in sentences for number in inside}
        spaces = self._spaces(text, [span for span, _ in sentences], taken)
        yield MarkupPart("", next(spaces))
        for (span, inside), space in zip(sentences, spaces, strict=True):
            yield _part(plain, span, [self._tags[number] for number in inside], space)

    def _spaces(self, text: str, sentences: Sequence[InlineSpan], taken: set[int]) -> Iterator[str]:
        """The text and the remaining tags before, between and after the sentences."""
        tags = iter([tag for number, tag in enumerate(self._tags) if number not in taken])
        tag, write = next(tags, None), self._form.write
        ends = [0, *(span.end for span in sentences)]
        for at, start in zip(ends, [*(span.start for span in sentences), len(text)], strict=True):
            space = ""
            while tag is not None and tag.at <= start:
                space += write(text[at : tag.at]) + tag.markup
                at, tag = tag.at, next(tags, None)
            yield space + write(text[at:start])

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
        if tag.element is None:
            partners[number] = number
        elif not tag.closes:
            unfinished.append(number)
        elif unfinished and tags[unfinished[-1]].element == tag.element:
            begun = unfinished.pop()
            partners |= {begun: number, number: begun}
    return partners


def _sentences(plain: str, language: Language) -> Iterator[InlineSpan]:
    """The sentences with a letter or a digit: a model produces nonsense for a row of dots."""
    at = 0
    for text, space in split_sentences(plain, language):
        if has_letters(text):
            yield InlineSpan(at, at + len(text))
        at += len(text) + len(space)


def _part(plain: str, span: InlineSpan, tags: Sequence[_Tag], space: str) -> MarkupPart:
    """A sentence with single spaces, and its elements with their offsets in that text."""
    text, at = "", span.start
    opened: list[tuple[_Tag, int]] = []
    levels: list[list[Element]] = [[]]
    for tag in (*tags, None):
        here = span.end if tag is None else tag.at
        more = _normalized(plain[at:here])
        text += more[1:] if text.endswith(" ") and more.startswith(" ") else more
        at = here
        if tag is None:
            continue
        if tag.element is None:
            levels[-1].append(Element(tag.markup, "", len(text), len(text)))
        elif not tag.closes:
            opened.append((tag, len(text)))
            levels.append([])
        else:
            (begun, start), inner = opened.pop(), tuple(levels.pop())
            around = _without_spaces(text, InlineSpan(start, len(text)))
            levels[-1].append(Element(begun.markup, tag.markup, *around, inner))
    return MarkupPart(text, space, tuple(levels[0]))


def _normalized(text: str) -> str:
    """Normalize spaces and remove invisible characters, as in the training data."""
    return _SPACES.sub(" ", text.translate(_INVISIBLE))
