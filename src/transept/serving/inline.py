"""Markup inside of a sentence goes with its words.

    I <b>really</b> like it.        Mir gefällt es <b>wirklich</b>.

The sentence is translated without its markup. Then each element is put around the words of the
translation that look at the words it was around; all of it comes out once, nested as it was.
"""

from bisect import bisect, bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as escape_html
from re import finditer
from typing import NamedTuple

from transept.api.results import Alignment


@dataclass(frozen=True, slots=True)
class Element:
    """Two tags around a stretch of a sentence; or one, or a comment, between two characters."""

    open: str
    close: str
    start: int
    end: int
    inner: "tuple[Element, ...]" = ()


class Span(NamedTuple):
    """From a character, or a word, up to another one."""

    start: int
    end: int


def escape(text: str) -> str:
    """Text as HTML; quotes stay, for text is no attribute."""
    return escape_html(text, quote=False)


def has_letters(text: str) -> bool:
    """Whether there is a letter, or a digit, in a text."""
    return any(map(str.isalnum, text))


def transfer(source: str, inside: Sequence[Element], target: str, alignment: Alignment) -> str:
    """The translation of a sentence as HTML, with the markup that was inside of the sentence.

    Example:
        >>> strong = Element("<b>", "</b>", 2, 8)
        >>> links = ((0, 0), (2, 1), (3, 2), (1, 3))
        >>> transfer("I really like it.", [strong], "Mir gefällt es wirklich.", links)
        'Mir gefällt es <b>wirklich</b>.'
    """
    looks_at = {j: i for i, j in alignment}
    pair = _Pair(source, target, _words(source), _words(target), looks_at)
    return pair.written(inside, Span(0, len(pair.target_words)), Span(0, len(target)))


@dataclass(frozen=True)
class _Pair:
    source: str
    target: str
    source_words: list[Span]
    target_words: list[Span]
    looks_at: dict[int, int]
    """The source word of each target word."""

    def written(self, elements: Sequence[Element], words: Span, characters: Span) -> str:
        """A stretch of the target, with the elements that belong into it."""
        owners = self._owners(elements)
        places = [
            (*self._place(element, number, owners, words), number)
            for number, element in enumerate(elements)
        ]
        text, at = "", characters.start
        for around, own_words, number in sorted(places):
            element = elements[number]
            # What has no word of its own must not come to stand inside of another element.
            start = min(max(at, around.start), characters.end)
            end = min(max(start, around.end), characters.end)
            inner = self.written(element.inner, own_words, Span(start, end))
            before, after = self._spaces(element, start)
            text += escape(self.target[at:start])
            text += f"{before}{element.open}{inner}{element.close}{after}"
            at = end
        return text + escape(self.target[at : characters.end])

    def _spaces(self, element: Element, at: int) -> tuple[str, str]:
        """What stood by itself, such as a picture between two words, is to do so again."""
        if element.close or self.source[element.start - 1 : element.start].strip():
            return "", ""
        before, after = self.target[:at][-1:], self.target[at : at + 1]
        return " " if before.strip() else "", " " if after.isalnum() else ""

    def _owners(self, elements: Sequence[Element]) -> dict[int, int]:
        """Source words, and which of the elements each is in."""
        owners: dict[int, int] = {}
        for number, element in enumerate(elements):
            for i in self._words_in(element):
                owners.setdefault(i, number)
        return owners

    def _words_in(self, element: Element) -> list[int]:
        """The source words of which a letter or a digit is in an element."""
        return [i for i in range(*self._words_touched(element)) if self._holds_letters(element, i)]

    def _words_touched(self, element: Element) -> Span:
        first = bisect(self.source_words, element.start, key=_end)
        last = bisect_left(self.source_words, element.end, key=_start)
        return Span(first, first if element.start == element.end else last)

    def _holds_letters(self, element: Element, i: int) -> bool:
        start, end = self.source_words[i]
        held = self.source[max(start, element.start) : min(end, element.end)]
        return has_letters(held) or not has_letters(self.source[start:end])

    def _place(
        self, element: Element, number: int, owners: dict[int, int], words: Span
    ) -> tuple[Span, Span]:
        """Around which characters of the target an element goes, and which words it has then."""
        part = self._part_of_word(element, words)
        if part is not None:
            return part
        # Words count by their length, those of no element against it; another's are taboo. Of two
        # that are far apart the longer one has it: `hat` and `begrüßt` both look at `welcomed`.
        gains = [self._gain(j, number, owners) for j in range(*words)]
        best = _largest_sum(gains)
        if best is None:
            own_words = self._neighbour(element, owners, words)
        else:
            own_words = Span(words.start + best.start, words.start + best.end)
        if own_words is None:
            at = self._between(element, words)
            return Span(at, at), Span(words.start, words.start)
        return self._edges(element, own_words), own_words

    def _gain(self, j: int, number: int, owners: dict[int, int]) -> int:
        owner = owners.get(self.looks_at.get(j, -1))
        length = self.target_words[j].end - self.target_words[j].start
        return length if owner == number else -length if owner is None else -len(self.target)

    def _neighbour(self, element: Element, owners: dict[int, int], words: Span) -> Span | None:
        """For words that nobody looks at, what looks at the word after them, or before them.

        A link needs a word: of `I <a>would like to</a> thank` it may be the first of `thank`.
        """
        own = self._words_in(element)
        for i in (own[-1] + 1, own[0] - 1) if own else ():
            for j in range(*words):
                if self.looks_at.get(j) == i and i not in owners:
                    return Span(j, j + 1)
        return None

    def _part_of_word(self, element: Element, words: Span) -> tuple[Span, Span] | None:
        """For H<sub>2</sub>O: the same letters of the same word, if that has them."""
        first, last = self._words_touched(element)
        if last - first != 1:
            return None
        start, end = self.source_words[first]
        around = self.source[start : element.start] + self.source[element.end : end]
        if not has_letters(around):
            return None
        letters, offset = self.source[element.start : element.end], element.start - start
        for j in range(*words):
            if self.looks_at.get(j) == first:
                word = self.target_words[j]
                found = self.target.find(letters, word.start + max(0, offset), word.end)
                if found >= 0:
                    return Span(found, found + len(letters)), Span(j, j + 1)
        return None

    def _edges(self, element: Element, words: Span) -> Span:
        """From the first word to the last, without punctuation that was outside of the element."""
        start, end = self.target_words[words.start].start, self.target_words[words.end - 1].end
        letters = [at for at in range(start, end) if self.target[at].isalnum()]
        before = self.source[: element.start].rpartition(" ")[2]
        after = self.source[element.end :].partition(" ")[0]
        # A word that is the same begins, or ends, where it did; else where its letters do.
        if before and self.target.startswith(before, start):
            start += len(before)
        elif letters and self.source[element.start].isalnum():
            start = letters[0]
        if after and self.target[start:end].endswith(after):
            end -= len(after)
        elif letters and self.source[element.end - 1].isalnum():
            end = letters[-1] + 1
        return Span(start, end)

    def _between(self, element: Element, words: Span) -> int:
        """Where something without words goes: after the word it touched, or before the next."""
        after = bisect_left(self.source_words, element.start, key=_end)
        touches = after < len(self.source_words) and self.source_words[after].start < element.start
        nearest = min(
            ((self.looks_at[j], j) for j in range(*words) if self.looks_at.get(j, -1) >= after),
            default=None,
        )
        if nearest is None:
            return len(self.target)
        i, j = nearest
        start, end = self.target_words[j]
        if not (touches and i == after):
            return start
        word = self.source_words[i]
        is_same = self.source[slice(*word)] == self.target[start:end]
        return start + element.start - word.start if is_same else end


def _words(text: str) -> list[Span]:
    return [Span(*found.span()) for found in finditer(r"\S+", text)]


def _largest_sum(gains: Sequence[int]) -> Span | None:
    """The stretch with the largest sum above 0: the longest, of those the first."""
    best, largest = None, 0
    total, start = 0, 0
    for at, gain in enumerate(gains):
        if total < 0:
            total, start = 0, at
        total += gain
        longer = best is not None and at + 1 - start > best.end - best.start
        if total > largest or (total == largest > 0 and longer):
            best, largest = Span(start, at + 1), total
    return best


def _start(span: Span) -> int:
    return span.start


def _end(span: Span) -> int:
    return span.end
