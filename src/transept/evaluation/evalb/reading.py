"""A line as evalb sees it: whatever stands on it is a sentence, with whatever is wrong with it."""

import re
from dataclasses import dataclass, field
from typing import Final, Literal

from transept.evaluation.evalb.parameters import Parameters

Problem = Literal["stray text", "unbalanced brackets", "length differs", "words differ"]
"""Why a sentence is an error. At stray text evalb itself repeats its complaint until it stops."""

_QUOTES: Final = frozenset("'\"/")
# The C library's spaces. A bracket with one run of characters after a space, or with none, is a
# word; `(NN dog )`, with a space too many, is not.
_TOKEN: Final = re.compile(r"\(([^\s()]*+)(?:\s++([^\s()]*+)\))?|(\))|[^\s()]++", re.ASCII)


@dataclass(slots=True)
class Span:
    """A bracket and the words it holds, counted without deleted ones."""

    label: str
    start: int
    end: int = -1


@dataclass(slots=True)
class Quote:
    """A quotation mark that may have to be put back."""

    word: str
    tag: str
    place: int
    """How many words are before it."""
    n_before: int
    """How many brackets were opened before it."""
    within: tuple[Span, ...]
    """The brackets around it."""


@dataclass(slots=True)
class TreeSide:
    """One side of a comparison: words that are not deleted, and every bracket."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    quotes: list[Quote] = field(default_factory=list)
    length: int = 0
    """Words, deleted ones too, but for those that parameters leave out of the length."""
    problems: list[Problem] = field(default_factory=list)


def read_side(line: str, parameters: Parameters) -> TreeSide:
    """Take a line apart. It may hold one tree, several or none."""
    side = TreeSide()
    unfinished: list[Span] = []
    closed_too_often = stray_text = False
    for token in _TOKEN.finditer(line):
        label, word, close = token.groups()
        if word is not None:
            _add_word(side, label, word, unfinished, parameters)
        elif label is not None:
            unfinished.append(Span(label, len(side.words)))
            side.spans.append(unfinished[-1])
        elif close and unfinished:
            unfinished.pop().end = len(side.words)
        elif close:
            closed_too_often = True
        else:
            stray_text = True
    for span in unfinished:
        span.end = len(side.words)
    if stray_text:
        side.problems.append("stray text")
    if unfinished or closed_too_often:
        side.problems.append("unbalanced brackets")
    return side


def _add_word(
    side: TreeSide, tag: str, word: str, unfinished: list[Span], parameters: Parameters
) -> None:
    if tag not in parameters.deleted_for_length:
        side.length += 1
    if tag in parameters.quotes and word in _QUOTES:
        here = len(side.words), len(side.spans)
        side.quotes.append(Quote(word, tag, *here, tuple(unfinished)))
    if tag not in parameters.deleted:
        side.words.append(word)
        side.tags.append(tag)


def put_back_quotes(gold: TreeSide, predicted: TreeSide, parameters: Parameters) -> None:
    """Undelete a quotation mark that only one side deletes, because of the tag it has there."""
    for ours in predicted.quotes:
        place = ours.place
        for theirs in gold.quotes:
            if theirs.place != place or theirs.tag == ours.tag:
                continue
            if theirs.tag in parameters.deleted and ours.tag not in parameters.deleted:
                _put_back(gold, theirs)
            elif ours.tag in parameters.deleted and theirs.tag not in parameters.deleted:
                _put_back(predicted, ours)


def _put_back(side: TreeSide, quote: Quote) -> None:
    side.words.insert(quote.place, quote.word)
    side.tags.insert(quote.place, quote.tag)
    for span in side.spans[quote.n_before :]:
        span.start += 1
        span.end += 1
    for span in quote.within:
        span.end += 1
    first = next(index for index, one in enumerate(side.quotes) if one is quote)
    for later in side.quotes[first:]:
        later.place += 1
