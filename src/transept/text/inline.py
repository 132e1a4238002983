"""Markup inside a sentence moves with its words.

    I <b>really</b> like it.        Mir gefällt es <b>wirklich</b>.

The sentence is translated without its markup. Each element is then placed around the target words
that are aligned with its source words. Each element appears once in the translation, nested as in
the source.
"""

from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from re import finditer
from typing import NamedTuple

START, END = attrgetter("start"), attrgetter("end")
CLOSING = (*",.;:!?)]}…»”’", "")
"""Characters that no space precedes."""


@dataclass(frozen=True, slots=True)
class Element:
    """A pair of tags around a span, or a standalone tag or comment with an empty span."""

    open: str
    close: str
    """Empty for a standalone tag."""
    start: int
    end: int
    inner: "tuple[Element, ...]" = ()
    """The nested elements."""
    before_space: bool = False
    """Whether white space follows a standalone tag."""


class InlineSpan(NamedTuple):
    """A range of characters or words. The end is exclusive."""

    start: int
    end: int


def transfer(
    source: str,
    inside: Sequence[Element],
    target: str,
    alignment: Iterable[tuple[int, int]],
    write: Callable[[str], str] = str,
) -> str:
    """Insert the inline markup of a sentence into its translation.

    Args:
        source: The sentence, without its markup.
        inside: The inline markup of the sentence.
        target: The translation, without markup.
        alignment: The aligned pairs of source and target words.
        write: Escapes text for the output.

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
    """A sentence and its translation, without markup, and their word alignment."""

    source: str
    target: str
    source_words: list[InlineSpan]
    target_words: list[InlineSpan]
    source_of: dict[int, int]
    """Maps each target word to the source word that it is aligned with."""
    write: Callable[[str], str]

    def written(
        self, elements: Sequence[Element], words: InlineSpan, characters: InlineSpan
    ) -> str:
        """Write a span of the target, with the elements placed around some of these words."""
        owners = self._owners(elements)
        places = [
            (*self._position(element, number, owners, words), number)
            for number, element in enumerate(elements)
        ]
        text, at = "", characters.start
        for around, own_words, number in sorted(places):
            element = elements[number]
            # An element that has no word must not end up inside another element.
            start = min(max(at, around.start), characters.end)
            end = min(max(start, around.end), characters.end)
            inner = self.written(element.inner, own_words, InlineSpan(start, end))
            text += self.write(self.target[at:start])
            before, after = self._spaces(element, text or self.target[:start], start)
            # In Markdown, emphasis around nothing is not emphasis.
            if inner or element.open != element.close:
                text += f"{before}{element.open}{inner}{element.close}{after}"
            # The space before a tag at the end of an element is inside the element.
            ends_in_tag = element.inner and element.inner[-1].start > element.end
            is_apart = (
                self.target[end : end + 1] == " " and self.target[end + 1 : end + 2] in CLOSING
            )
            at = end + (1 if ends_in_tag and is_apart else 0)
        return text + self.write(self.target[at : characters.end])

    def _spaces(self, element: Element, written: str, at: int) -> tuple[str, str]:
        """The spaces around a standalone tag, such as an image between two words.

        If the source has a space before the tag, the target must have one too.
        """
        if element.close or self.source[element.start - 1 : element.start].strip():
            return "", ""
        after, following = self.target[at : at + 1], self.source[element.start : element.start + 1]
        if element.before_space or not following.isalnum():
            is_apart = after.isalnum() or (element.before_space and after not in CLOSING)
        else:
            is_apart = False
        return " " if written[-1:].strip() else "", " " if is_apart and after.strip() else ""

    def _owners(self, elements: Sequence[Element]) -> dict[int, int]:
        """Map each source word inside an element to the number of that element."""
        owners: dict[int, int] = {}
        for number, element in enumerate(elements):
            for i in self._words_in(element):
                owners.setdefault(i, number)
        return owners

    def _words_in(self, element: Element) -> list[int]:
        """The source words of which a letter or a digit is inside an element."""
        return [i for i in range(*self._words_touched(element)) if self._holds_letters(element, i)]

    def _words_touched(self, element: Element) -> InlineSpan:
        """The source words that overlap an element. Empty if its span is empty."""
        first = bisect(self.source_words, element.start, key=END)
        last = bisect_left(self.source_words, element.end, key=START)
        return InlineSpan(first, first if element.start == element.end else last)

    def _holds_letters(self, element: Element, i: int) -> bool:
        """Whether a letter or digit of word i is inside an element. True if it has neither."""
        start, end = self.source_words[i]
        held = self.source[max(start, element.start) : min(end, element.end)]
        return _has_letter(held) or not _has_letter(self.source[start:end])

    def _position(
        self, element: Element, number: int, owners: dict[int, int], words: InlineSpan
    ) -> tuple[InlineSpan, InlineSpan]:
        """The target characters to place an element around, and the words among them."""
        part = self._part_of_word(element, words)
        if part is not None:
            return part
        # The element is placed around the range of words with the largest sum of gains. A word that
        # is aligned with the element adds its length. A word outside all elements subtracts its
        # length. A word of another element subtracts the length of the target. So of two aligned
        # words that are far apart the longer one wins: `hat` and `begrüßt` both mean `welcomed`.
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
        """The gain of target word j for the element with this number."""
        owner = owners.get(self.source_of.get(j, -1))
        length = self.target_words[j].end - self.target_words[j].start
        return length if owner == number else -length if owner is None else -len(self.target)

    def _neighbour(
        self, element: Element, owners: dict[int, int], words: InlineSpan
    ) -> InlineSpan | None:
        """A target word for an element whose words are not aligned: a link must contain a word.

        It is aligned with the source word after the element, or else with the one before it. For
        `I <a>would like to</a> thank` it is the first word aligned with `thank`.
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
        """The position of an element inside a word, such as H<sub>2</sub>O.

        It is placed around the same letters of the aligned word. None if that word lacks them.
        """
        first, last = self._words_touched(element)
        if last - first != 1:
            return None
        start, end = self.source_words[first]
        around = self.source[start : element.start] + self.source[element.end : end]
        if not _has_letter(around):
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
        """The span of the words, without punctuation that is outside the element in the source."""
        start, end = self.target_words[words.start].start, self.target_words[words.end - 1].end
        letters = [at for at in range(start, end) if self.target[at].isalnum()]
        before = self.source[: element.start].rpartition(" ")[2]
        after = self.source[element.end :].partition(" ")[0]
        # Characters adjacent to the element in the source stay outside of it if the target has the
        # same ones. Otherwise an element that starts or ends with a letter does so in the target.
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
        """The offset of an element without words: after an adjacent word, else before the next."""
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
        if self.source[slice(*word)] == self.target[start:end]:
            return start + element.start - word.start
        # A footnote number before a comma stays before it.
        rest = self.source[element.start : word.end]
        is_kept = not _has_letter(rest) and self.target[start:end].endswith(rest)
        return end - len(rest) if is_kept else end


def _has_letter(text: str) -> bool:
    return any(map(str.isalnum, text))


def _words(text: str) -> list[InlineSpan]:
    return [InlineSpan(*found.span()) for found in finditer(r"\S+", text)]


def _largest_sum(gains: Sequence[int]) -> InlineSpan | None:
    """The range with the largest positive sum. Ties: the longest range, then the first."""
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
