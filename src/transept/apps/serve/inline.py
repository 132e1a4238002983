"""Markup inside a sentence moves with its words.

    I <b>really</b> like it.        Mir gefällt es <b>wirklich</b>.

The sentence is translated without its markup. Then each element is put around those words of the
translation that are aligned with the words that it was around. Each element appears once in the
translation, nested as before.
"""

from bisect import bisect, bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from operator import attrgetter
from re import finditer
from typing import NamedTuple

from transept.api.texts import Alignment

START, END = attrgetter("start"), attrgetter("end")


@dataclass(frozen=True, slots=True)
class Element:
    """Two tags around a span of a sentence; or a tag or comment by itself, whose span is empty."""

    open: str
    close: str
    """Empty if it stands by itself."""
    start: int
    end: int
    inner: "tuple[Element, ...]" = ()
    """The elements inside it."""


class InlineSpan(NamedTuple):
    """A range of characters or of words; the end is excluded."""

    start: int
    end: int


def escape(text: str) -> str:
    """Text as HTML. Quotation marks stay: only inside an attribute they must be escaped."""
    return escape_html(text, quote=False)


def has_letters(text: str) -> bool:
    """Whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def transfer(
    source: str,
    inside: Sequence[Element],
    target: str,
    alignment: Alignment,
    write: Callable[[str], str] = escape,
) -> str:
    """The translation of a sentence, with the markup that was inside the sentence.

    Args:
        source: The sentence, without its markup.
        inside: The markup.
        target: The translation, without markup.
        alignment: Which words of the two belong together.
        write: Writes a text as HTML, unless given.

    Example:
        >>> strong = Element("<b>", "</b>", 2, 8)
        >>> links = ((0, 0), (2, 1), (3, 2), (1, 3))
        >>> transfer("I really like it.", [strong], "Mir gefällt es wirklich.", links)
        'Mir gefällt es <b>wirklich</b>.'
    """
    source_of = {j: i for i, j in alignment}
    pair = _Pair(source, target, _words(source), _words(target), source_of, write)
    return pair.written(inside, InlineSpan(0, len(pair.target_words)), InlineSpan(0, len(target)))


@dataclass(frozen=True)
class _Pair:
    """A sentence and its translation, without markup, and how their words are aligned."""

    source: str
    target: str
    source_words: list[InlineSpan]
    target_words: list[InlineSpan]
    source_of: dict[int, int]
    """The source word that each target word is aligned with."""
    write: Callable[[str], str]

    def written(
        self, elements: Sequence[Element], words: InlineSpan, characters: InlineSpan
    ) -> str:
        """A span of the target as it is written, with elements put around some of these words."""
        owners = self._owners(elements)
        places = [
            (*self._place(element, number, owners, words), number)
            for number, element in enumerate(elements)
        ]
        text, at = "", characters.start
        for around, own_words, number in sorted(places):
            element = elements[number]
            # An element without a word of its own must not end up inside another element.
            start = min(max(at, around.start), characters.end)
            end = min(max(start, around.end), characters.end)
            inner = self.written(element.inner, own_words, InlineSpan(start, end))
            before, after = self._spaces(element, start)
            text += self.write(self.target[at:start])
            text += f"{before}{element.open}{inner}{element.close}{after}"
            at = end
        return text + self.write(self.target[at : characters.end])

    def _spaces(self, element: Element, at: int) -> tuple[str, str]:
        """The spaces around a tag that stands by itself, such as a picture between two words.

        If there was a space before it in the source, there must be one in the target.
        """
        if element.close or self.source[element.start - 1 : element.start].strip():
            return "", ""
        before, after = self.target[:at][-1:], self.target[at : at + 1]
        return " " if before.strip() else "", " " if after.isalnum() else ""

    def _owners(self, elements: Sequence[Element]) -> dict[int, int]:
        """For each source word inside an element, the number of that element."""
        owners: dict[int, int] = {}
        for number, element in enumerate(elements):
            for i in self._words_in(element):
                owners.setdefault(i, number)
        return owners

    def _words_in(self, element: Element) -> list[int]:
        """The source words that have a letter or a digit inside an element."""
        return [i for i in range(*self._words_touched(element)) if self._holds_letters(element, i)]

    def _words_touched(self, element: Element) -> InlineSpan:
        """The source words that overlap an element; none if its span is empty."""
        first = bisect(self.source_words, element.start, key=END)
        last = bisect_left(self.source_words, element.end, key=START)
        return InlineSpan(first, first if element.start == element.end else last)

    def _holds_letters(self, element: Element, i: int) -> bool:
        """Whether a letter or digit of word i is inside an element; true for one without any."""
        start, end = self.source_words[i]
        held = self.source[max(start, element.start) : min(end, element.end)]
        return has_letters(held) or not has_letters(self.source[start:end])

    def _place(
        self, element: Element, number: int, owners: dict[int, int], words: InlineSpan
    ) -> tuple[InlineSpan, InlineSpan]:
        """The characters of the target that an element is put around, and the words among them."""
        part = self._part_of_word(element, words)
        if part is not None:
            return part
        # The element is put around the range of words with the largest sum of gains. A word that is
        # aligned with the element gains its length, a word of no element loses its length, and a
        # word of another element loses as much as all others could gain. So of two aligned words
        # that are far apart the longer one wins: `hat` and `begrüßt` both mean `welcomed`.
        gains = [self._gain(j, number, owners) for j in range(*words)]
        best = _largest_sum(gains)
        if best is None:
            own_words = self._neighbour(element, owners, words)
        else:
            own_words = InlineSpan(words.start + best.start, words.start + best.end)
        if own_words is None:
            at = self._between(element, words)
            return InlineSpan(at, at), InlineSpan(words.start, words.start)
        return self._edges(element, own_words), own_words

    def _gain(self, j: int, number: int, owners: dict[int, int]) -> int:
        """What target word j adds to the sum of a range for the element with this number."""
        owner = owners.get(self.source_of.get(j, -1))
        length = self.target_words[j].end - self.target_words[j].start
        return length if owner == number else -length if owner is None else -len(self.target)

    def _neighbour(
        self, element: Element, owners: dict[int, int], words: InlineSpan
    ) -> InlineSpan | None:
        """A target word for an element whose words are aligned with none.

        It is one that is aligned with the source word after the element, or before it: a link must
        have a word. For `I <a>would like to</a> thank` it is the first word aligned with `thank`.
        """
        own = self._words_in(element)
        for i in (own[-1] + 1, own[0] - 1) if own else ():
            for j in range(*words):
                if self.source_of.get(j) == i and i not in owners:
                    return InlineSpan(j, j + 1)
        return None

    def _part_of_word(
        self, element: Element, words: InlineSpan
    ) -> tuple[InlineSpan, InlineSpan] | None:
        """The place of an element inside a word, such as H<sub>2</sub>O.

        It is put around the same letters of the aligned word, if that has them.
        """
        first, last = self._words_touched(element)
        if last - first != 1:
            return None
        start, end = self.source_words[first]
        around = self.source[start : element.start] + self.source[element.end : end]
        if not has_letters(around):
            return None
        letters, offset = self.source[element.start : element.end], element.start - start
        for j in range(*words):
            if self.source_of.get(j) == first:
                word = self.target_words[j]
                found = self.target.find(letters, word.start + max(0, offset), word.end)
                if found >= 0:
                    return InlineSpan(found, found + len(letters)), InlineSpan(j, j + 1)
        return None

    def _edges(self, element: Element, words: InlineSpan) -> InlineSpan:
        """The span from the first word to the last, without punctuation outside the element."""
        start, end = self.target_words[words.start].start, self.target_words[words.end - 1].end
        letters = [at for at in range(start, end) if self.target[at].isalnum()]
        before = self.source[: element.start].rpartition(" ")[2]
        after = self.source[element.end :].partition(" ")[0]
        # Characters that touch the element in the source stay outside of it, if the target has the
        # same ones. Otherwise an element that began or ended with a letter does so again.
        if before and self.target.startswith(before, start):
            start += len(before)
        elif letters and self.source[element.start].isalnum():
            start = letters[0]
        if after and self.target[start:end].endswith(after):
            end -= len(after)
        elif letters and self.source[element.end - 1].isalnum():
            end = letters[-1] + 1
        return InlineSpan(start, end)

    def _between(self, element: Element, words: InlineSpan) -> int:
        """The place of an element without words: behind the word it touched, or before the next."""
        after = bisect_left(self.source_words, element.start, key=END)
        touches = after < len(self.source_words) and self.source_words[after].start < element.start
        nearest = min(
            ((self.source_of[j], j) for j in range(*words) if self.source_of.get(j, -1) >= after),
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


def _words(text: str) -> list[InlineSpan]:
    return [InlineSpan(*found.span()) for found in finditer(r"\S+", text)]


def _largest_sum(gains: Sequence[int]) -> InlineSpan | None:
    """The range with the largest sum above 0; of several the longest, and of these the first."""
    best, largest = None, 0
    total, start = 0, 0
    for at, gain in enumerate(gains):
        if total < 0:
            total, start = 0, at
        total += gain
        longer = best is not None and at + 1 - start > best.end - best.start
        if total > largest or (total == largest > 0 and longer):
            best, largest = InlineSpan(start, at + 1), total
    return best
