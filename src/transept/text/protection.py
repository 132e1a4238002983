"""A sentence as a model reads it, and its translation from what the model writes.

    - Mail info@example.org, or call at 3:30 pm 🙂        the sentence
    Mail ⓪, or call at ④                                  the model reads
    Schreib an ⓪, oder ruf um ④ an.                       the model writes
    - Schreib an info@example.org, oder ruf um 15:30 Uhr an 🙂

Each protected span is replaced by a symbol of the vocabulary that the model has learned to copy. A
vocabulary without such symbols leaves the spans in the text. List markers, emoji and several
hashtags at the ends of a sentence are not given to the model. A sentence in capitals is read in
lower case. The final punctuation and the quotation marks of the translation follow the sentence.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import cycle
from typing import Final, NamedTuple

from transept.text.figures import has_figures, loses_figures
from transept.text.french import (
    FRENCH,
    FRENCH_TO_ENGLISH,
    OPENING,
    apart,
    fitted,
    joined,
    known,
    spaced,
    straight,
    with_amounts,
    with_guillemets,
    with_straight_quotes,
)
from transept.text.sentences import has_letters
from transept.text.spans import EMOJI, MASKS, Protected, protected
from transept.text.spelling import Encode, respelt
from transept.text.surface import (
    WINDOWS,
    follow,
    half_form,
    in_capitals,
    in_double_quotes,
    in_single_quotes,
    marks,
    quotes_around,
    sentence_case,
    unstressed,
    with_first_case,
    without_guillemets,
)

Links = tuple[tuple[int, int], ...]
"""A word alignment: pairs of numbers of words."""

_UNKNOWN: Final = {
    **dict.fromkeys(map(ord, "\xad\u200b\u2060\ufeff"), ""),
    **dict.fromkeys(map(ord, "\xa0\u2007\u2009\u202f"), " "),
    **{ord(raised): letter for raised, letter in zip("ᵈᵉᵐⁿʳˢ", "demnrs", strict=True)},
    **WINDOWS,
}
"""Characters that a model has not seen: invisible ones, which are removed, spaces, the raised
letters of French abbreviations, and those of Windows."""
_MONTH = r"(?:Jan|Jän|Feb|Mär|Mar|Apr|Ma[iy]|Jun|Jul|Aug|Sep|O[kc]t|Nov|De[zc])"
# A number with a full stop is an ordinal, not a list marker, if it begins a date. The number of a
# section, such as 3.2.1, is a marker before a capital letter.
_MARKER = re.compile(
    r"(?:(?:[-*+•·▪◦‣–—>→⇒➔►▶▸✓✔✗✘■□●○★☆]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})\)|\[[ xX]\]"
    rf"|\d{{1,3}}\.(?!\s+(?:{_MONTH}|[a-zäöü]))|\d{{1,2}}(?:\.\d{{1,2}}){{2,3}}\.?(?=\s+[A-ZÀ-Ü]))"
    r"\s+)+"
)
# Several hashtags at the end are labels. A single one may be a word: `I love #paris`.
_EDGE = re.compile(
    rf"(?:\s*{EMOJI})*(?:\s+#\w[\w-]*(?!\S)){{2,}}(?:\s*{EMOJI})*\s*\Z"
    rf"|(?:\s*{EMOJI})+\s*\Z|\A\s*(?:{EMOJI}\s*)+"
)
# One to eight words at least four times in a row, or up to eight letters at least eight times.
_WORD = re.compile(r"\w+")
_LOOP = re.compile(r"(\b\w+(?:\W+\w+){0,7}?)(?:\W+\1\b){3,}|([^\W\d_]{1,8}?)\2{7,}")
_STUTTER = re.compile(r"\b(\w+\b\.?)(?: \1(?!\w)){2,}")
# Overlapping, so that three items in a row are found twice.
_ITEM_TWICE = re.compile(r"\b(\w{3,}),(?=(?: \w+)? \1,)")
# The words of a sentence may be shorter than those of its translation: `no, no`.
_SAID_TWICE = re.compile(r"\b(\w+),(?=(?: \w+)? \1,| \1\b)", re.IGNORECASE)
_TYPOGRAPHIC = re.compile("[“”„«»]")
_STRAIGHT: Final = str.maketrans("“”‘’", "\"\"''")
_LAST_WORD = re.compile(r"\w*\.?\Z")
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>[\w:-]+)[^<>]*(?<!/)>")
_MASK = re.compile(f"[{MASKS[0]}-{MASKS[-1]}]")


class MaskPool:
    """Chooses symbols: the first half for names, the second half for figures.

    A model translates `at ⓪` differently if it is a time. With more spans than symbols, the symbols
    are used again, in the same order.
    """

    def __init__(self, masks: Sequence[str] = MASKS) -> None:
        half = len(masks) // 2
        self._names, self._figures = cycle(masks[:half]), cycle(masks[half:])

    def next(self, is_figure: bool) -> str:
        """The next symbol."""
        return next(self._figures if is_figure else self._names)


class MaskedSpan(NamedTuple):
    """A protected span of a sentence."""

    mask: str
    """The symbol that replaces it. The span itself if the vocabulary has no symbols."""
    source: str
    target: str
    """Its form in the translation."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A sentence as a model reads it.

    Example:
        >>> masked = Masked.of("- Mail info@example.org 🙂")
        >>> masked.before, masked.after, masked.text == f"Mail {MASKS[0]}"
        ('- ', ' 🙂', True)
        >>> masked.restored(f"Schreib an {MASKS[0]}.")
        '- Schreib an info@example.org 🙂'
    """

    text: str
    """What the model reads."""
    before: str = ""
    """A list marker or emoji, which is written before the translation."""
    after: str = ""
    """Emoji and hashtags, which are written after the translation."""
    spans: tuple[MaskedSpan, ...] = ()
    forms: tuple[Callable[[str], str], ...] = ()
    """What the translation takes from the sentence: its capitals, its single quotation marks."""
    languages: tuple[str, str] = ("", "")
    """The languages of the sentence and of its translation, if they are known."""

    @classmethod
    def of(
        cls,
        source: str,
        masks: Sequence[str] = MASKS,
        languages: tuple[str, str] = ("", ""),
        *,
        encode: Encode | None = None,
        all_figures: bool = False,
    ) -> "Masked":
        """Mask a sentence.

        Args:
            source: The sentence.
            masks: The symbols of the vocabulary. If there are none, spans are left in the text, and
                numbers are left to the model.
            languages: The languages of the sentence and of its translation, if they are known.
            encode: The vocabulary, which restores the umlauts of German that was written without
                them.
            all_figures: Whether to mask all numbers and dates.
        """
        # A model knows `ü` as one character.
        composed = unicodedata.normalize("NFC", source)
        before, inner, after = _edges(composed.translate(_UNKNOWN))
        pool = MaskPool(masks) if masks else None
        pieces, spans, at = [], [], 0
        for found in protected(inner, *languages, all_figures=all_figures):
            if pool is None and found.is_figure:
                continue
            span = _with_quotes(inner, found, languages) if pool and found.start > at else found
            here = inner[span.start : span.end]
            mask = pool.next(span.is_figure) if pool else here
            pieces += [inner[at : span.start], mask]
            spans.append(MaskedSpan(mask, here, span.target))
            at = span.end
        pieces.append(inner[at:])
        text, forms = _readable(pieces, languages, encode, has_spans=bool(spans) and pool is None)
        return cls(text, before, after, tuple(spans), forms, languages)

    def with_marks_joined(self) -> "Masked":
        """The sentence as it was written, with opening marks next to their words."""
        if joined not in self.forms:
            return self
        forms = tuple(form for form in self.forms if form is not joined)
        return replace(self, text=joined(self.text), forms=forms)

    @property
    def has_words(self) -> bool:
        """Whether anything is left to translate."""
        text = self.text
        for span in self.spans:
            text = text.replace(span.mask, "")
        return has_letters(text)

    def is_kept(self, output: str) -> bool:
        """Whether an output of the model has each span, and no symbol that stands for none.

        A closing tag must follow its opening tag.
        """
        wanted = Counter(span.mask for span in self.spans)
        if any(output.count(mask) < n for mask, n in wanted.items()):
            return False
        if any(output.find(one) > output.find(other) for one, other in self._tags()):
            return False
        return sum(map(output.count, MASKS)) <= sum(wanted[mask] for mask in MASKS)

    def _tags(self) -> Iterator[tuple[str, str]]:
        """The symbols of each opening tag and of its closing tag."""
        opened: list[tuple[str, str]] = []
        for span in self.spans:
            if not (tag := _TAG.match(span.source)):
                continue
            if not tag["closes"]:
                opened.append((tag["name"], span.mask))
            elif opened and opened[-1][0] == tag["name"]:
                yield opened.pop()[1], span.mask

    @property
    def has_figures(self) -> bool:
        """Whether the model reads numbers."""
        return has_figures(self.text, self.languages)

    def keeps_figures(self, output: str) -> bool:
        """Whether an output of the model has the numbers and the dates that the model reads."""
        return not loses_figures(self.text, output, self.languages)

    def keeps_marks(self, output: str) -> bool:
        """Whether an output has as many quotation marks and brackets as the sentence."""
        return marks(output) == marks(self.text)

    def is_loop(self, output: str) -> bool:
        """Whether an output of the model repeats what the sentence does not repeat.

        That is a phrase, or two items of a list, as in `a hat, a hat, a coat, the coat`.
        """
        if len(_ITEM_TWICE.findall(output)) > 1 and not _SAID_TWICE.search(self.text):
            return True
        if not _may_loop(output):
            return False
        return bool(_LOOP.search(output)) and not _LOOP.search(self.text)

    def restored(self, output: str) -> str:
        """The translation: the output of the model with the spans, in the form of the sentence.

        A phrase that is repeated without end is written once, and so is a word three times in a
        row.
        """
        output = follow(self.text, self._fitted(self._without_repetition(output)))
        return self.before + self._filled(self.formed(output)) + self.after

    def formed(self, output: str) -> str:
        """An output of the model in the form of the sentence."""
        for form in self.forms:
            output = form(output)
        return output

    def begun(self, output: str) -> str:
        """The start of a translation, from the start of an output without spans."""
        written = self._without_stutter(output).translate(WINDOWS)
        return self.before + self.formed(with_first_case(self.text, written))

    def realigned(self, links: Links, output: str) -> Links:
        """The alignment of the sentence with its translation, from that of what the model reads.

        A span may contain spaces, so a word of the model may be several words of the sentence. A
        repeated word is written once. The forms of French add and remove spaces.
        """
        written = self._fitted(self._without_repetition(output))
        if written != output:
            place = _places(output.split(), written.split())
            links = tuple(dict.fromkeys((x, place[y]) for x, y in links))
        shown = self.formed(follow(self.text, written))
        if len(shown.split()) != len(written.split()):
            numbers = _numbers_in(written, shown)
            links = tuple(dict.fromkeys((x, j) for x, y in links for j in numbers[y]))
            written = shown
        is_apart = joined in self.forms
        if not self.spans and not self.before and not is_apart:
            return links
        forms = {one.mask: one.source for one in self.spans}
        here = _word_ranges(self.text, self.before, forms, is_apart=is_apart)
        there = _word_ranges(written, self.before, {one.mask: one.target for one in self.spans})
        kept = tuple((i, i) for i in range(len(self.before.split())))
        return kept + tuple((i, j) for x, y in links for i in here[x] for j in there[y])

    def _fitted(self, output: str) -> str:
        if self.languages[1] != FRENCH or not self.spans:
            return output
        return fitted(output, {span.mask: span.target for span in self.spans})

    def _without_repetition(self, output: str) -> str:
        if self.is_loop(output):
            output = _LOOP.sub(lambda found: found[1] or found[2], output)
        return self._without_stutter(output)

    def _without_stutter(self, output: str) -> str:
        return output if _STUTTER.search(self.text) else _STUTTER.sub(r"\1", output)

    def _filled(self, output: str) -> str:
        waiting = list(self.spans)

        def form(found: re.Match[str]) -> str:
            index = next((at for at, one in enumerate(waiting) if one.mask == found[0]), None)
            return "" if index is None else waiting.pop(index).target

        return _MASK.sub(form, output)


def _with_quotes(text: str, span: Protected, languages: tuple[str, str]) -> Protected:
    """The span with the quotation marks around it, which a model may lose."""
    marks = quotes_around(text, span.start, span.end, languages[1])
    if marks is None:
        return span
    opening, closing = marks
    if languages == FRENCH_TO_ENGLISH:
        opening, closing = opening.translate(_STRAIGHT), closing.translate(_STRAIGHT)
    target = f"{opening}{span.target}{closing}"
    return span._replace(start=span.start - 1, end=span.end + 1, target=target)


def _readable(
    pieces: Sequence[str],
    languages: tuple[str, str],
    encode: Encode | None,
    *,
    has_spans: bool,
) -> tuple[str, tuple[Callable[[str], str], ...]]:
    """A text as a model knows it, and the forms of the sentence that its translation takes.

    Args:
        pieces: The text. Every second piece is a mask, or a span itself.
        languages: Those of the sentence and of its translation.
        encode: The vocabulary.
        has_spans: Whether the text contains spans, which must not be changed.
    """
    text, forms = "".join(pieces), list[Callable[[str], str]]()
    if in_capitals(text) and not has_spans:
        text, forms = sentence_case(text), [str.upper]
    else:
        changed = [piece if at % 2 else unstressed(piece) for at, piece in enumerate(pieces)]
        text = "".join(changed)
    if not has_spans:
        if encode and languages[0] == "de":
            text = respelt(text, encode)
        text, more = _in_known_marks(text, languages)
        forms += more
    if half := half_form(text, languages):
        forms.append(lambda output: output.translate(half))
    if languages[1] == FRENCH:
        forms += _french_forms(text, has_spans=has_spans)
    return text, tuple(forms)


def _in_known_marks(
    text: str, languages: tuple[str, str]
) -> tuple[str, list[Callable[[str], str]]]:
    """A text with marks that a model knows, and the forms that its translation takes from them."""
    forms = list[Callable[[str], str]]()
    text = without_guillemets(text, languages[0])
    if (doubled := in_double_quotes(text)) != text:
        text = doubled
        # French has guillemets also where English has single marks.
        if languages[1] != FRENCH or not _TYPOGRAPHIC.search(text):
            forms.append(in_single_quotes)
    if languages == FRENCH_TO_ENGLISH:
        forms.append(with_straight_quotes)
    if FRENCH in languages:
        text = known(text) if languages[0] == FRENCH else straight(text)
        if (opened := apart(text)) != text:
            text = opened
            forms.append(joined)
    return text, forms


def _french_forms(text: str, *, has_spans: bool) -> list[Callable[[str], str]]:
    """The forms of a French translation. Straight quotation marks stay straight."""
    quoted = [with_guillemets] if _TYPOGRAPHIC.search(text) else []
    amounts = [] if has_spans else [with_amounts]
    return [*quoted, *amounts, spaced]


def before_repetition(output: str) -> str:
    """The start of an output without a last word that may become a repetition, and be omitted.

    Example:
        >>> before_repetition("I saw ten ten te")
        'I saw ten'
    """
    words = output.split(" ")
    while len(words) > 1 and _LAST_WORD.findall(words[-2])[0].startswith(words[-1]):
        words.pop()
    return " ".join(words)


def _may_loop(text: str) -> bool:
    """Whether a word occurs four times, or a letter eight times in a word.

    Otherwise nothing is repeated. This saves most of the searches for a loop, which are slow.
    """
    words = _WORD.findall(text)
    if max(Counter(words).values(), default=0) >= 4:
        return True
    return any(len(word) >= 8 and max(map(word.count, word)) >= 8 for word in words)


def _places(words: Sequence[str], kept: Sequence[str]) -> list[int]:
    """The place of each word among those that are kept. One that is not has that of its copy."""
    places: list[int] = []
    for _, start, end, at, stop in SequenceMatcher(None, words, kept, autojunk=False).get_opcodes():
        if end - start == stop - at:
            places += range(at, stop)
        else:
            # A copy may have a full stop, which is not part of the repetition.
            copies = ("".join(kept[at : at + 1]).startswith(word) for word in words[start:end])
            places += (at if is_next else max(at - 1, 0) for is_next in copies)
    return places


def _numbers_in(written: str, shown: str) -> list[list[int]]:
    """The numbers of the words of a text that each word of its other form has become."""
    # Capitals are compared as small letters, of which each has as many.
    before, after = (
        [(number, letter.lower()) for number, word in enumerate(text.split()) for letter in word]
        for text in (written, shown)
    )
    sides = [letter for _, letter in before], [letter for _, letter in after]
    found: list[list[int]] = [[] for _ in written.split()]
    for x, y, size in SequenceMatcher(None, *sides, autojunk=False).get_matching_blocks():
        for at in range(size):
            found[before[x + at][0]].append(after[y + at][0])
    return [sorted(set(each)) for each in found]


def _word_ranges(
    text: str, before: str, forms: Mapping[str, str], *, is_apart: bool = False
) -> list[range]:
    """The words of a sentence that each word of the model is.

    With `is_apart`, an opening quotation mark or bracket is a part of the next word.
    """
    ranges, at = [], len(before.split())
    for word in text.split():
        if is_apart and word in OPENING:
            ranges.append(range(at, at + 1))
            continue
        more = (word.count(mask) * (len(form.split()) - 1) for mask, form in forms.items())
        n_words = 1 + sum(more) if _MASK.search(word) else 1
        ranges.append(range(at, at + n_words))
        at += n_words
    return ranges


def _edges(text: str) -> tuple[str, str, str]:
    """Split a sentence into a list marker or emoji, the text, and emoji or hashtags."""
    start, end = 0, len(text)
    if found := _MARKER.match(text):
        start = found.end()
    for found in _EDGE.finditer(text, start):
        if found.start() == start and found.end() < end:
            start = found.end()
        elif found.end() == end:
            end = found.start()
    return (text[:start], text[start:end], text[end:]) if start < end else ("", text, "")
