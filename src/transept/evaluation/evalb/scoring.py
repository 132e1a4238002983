"""Two lines compared: which of the brackets in one are in the other."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from transept.evaluation.evalb.parameters import Parameters
from transept.evaluation.evalb.reading import Problem, Span, TreeSide, put_back_quotes, read_side

Status = Literal["valid", "error", "skipped"]

_FUNCTION: Final = re.compile("[-=].*", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceScore:
    """What there is to count in a sentence. Deleted words and brackets are not in it."""

    length: int
    """The gold sentence's words: what decides whether it is a short one."""
    status: Status
    """Only `valid` sentences count for evalb; it skips one of which no word was predicted."""
    problems: tuple[Problem, ...] = ()
    """What makes it an error, or would if it were not skipped."""
    gold_problems: tuple[Problem, ...] = ()
    """Those of these problems that are in the gold tree itself."""
    gold: int
    """Brackets of the gold tree."""
    predicted: int
    """Brackets of the predicted tree."""
    matched: int = 0
    """Brackets of both. Each matches one other only: two NPs over the same words need two."""
    crossing: int = 0
    """Predicted brackets that overlap a gold one, while neither contains the other."""
    words: int
    """Words of the gold tree."""
    right_tags: int = 0
    """Of these, how many have the right tag."""

    @property
    def complete(self) -> bool:
        """Whether the two trees have the same brackets."""
        return self.status == "valid" and self.gold == self.predicted == self.matched


def score_sentence(gold: str, predicted: str, parameters: Parameters) -> SentenceScore:
    """Compare a predicted line with the gold one."""
    sides = read_side(gold, parameters), read_side(predicted, parameters)
    if sides[1].words and len(sides[0].words) != len(sides[1].words):
        put_back_quotes(*sides, parameters)
    problems = (*sides[0].problems, *sides[1].problems, *_differences(*sides, parameters))
    theirs, ours = (_counted(side.spans, parameters) for side in sides)
    status = _status(sides[1], problems)
    valid = status == "valid"
    return SentenceScore(
        length=sides[0].length,
        status=status,
        problems=problems,
        gold_problems=tuple(sides[0].problems),
        gold=len(theirs),
        predicted=len(ours),
        matched=_matched(theirs, ours, parameters) if valid else 0,
        crossing=_crossing(theirs, ours) if valid else 0,
        words=len(sides[0].words),
        right_tags=sum(map(parameters.same_label, sides[0].tags, sides[1].tags)) if valid else 0,
    )


def _status(predicted: TreeSide, problems: tuple[Problem, ...]) -> Status:
    """A line without a predicted word is skipped, even if evalb has complained about brackets."""
    if not predicted.words and "stray text" not in problems:
        return "skipped"
    return "error" if problems else "valid"


def _differences(gold: TreeSide, predicted: TreeSide, parameters: Parameters) -> list[Problem]:
    if not predicted.words:
        return []
    if len(gold.words) != len(predicted.words):
        return ["length differs"]
    same = all(map(parameters.same_word, gold.words, predicted.words))
    return [] if same else ["words differ"]


def _counted(spans: Iterable[Span], parameters: Parameters) -> list[Span]:
    """The brackets that are neither empty nor deleted, their labels without functions."""
    counted = []
    for span in spans:
        # Tags keep their functions. A label that begins with a hyphen becomes empty.
        label = _FUNCTION.sub("", span.label)
        if span.start < span.end and not parameters.deletes_bracket(label):
            counted.append(Span(label, span.start, span.end))
    return counted


def _matched(gold: Iterable[Span], predicted: Iterable[Span], parameters: Parameters) -> int:
    """Each gold bracket takes the first predicted one that matches and is not taken yet."""
    free: dict[tuple[int, int], list[str]] = {}
    for span in predicted:
        free.setdefault((span.start, span.end), []).append(span.label)
    matched = 0
    for span in gold:
        labels = free.get((span.start, span.end), [])
        for index, label in enumerate(labels):
            if parameters.bracketing == "unlabelled" or parameters.same_label(span.label, label):
                del labels[index]
                matched += 1
                break
    return matched


def _crossing(gold: Iterable[Span], predicted: Iterable[Span]) -> int:
    places = {(span.start, span.end) for span in gold}
    return sum(
        any(
            start < span.start < end < span.end or span.start < start < span.end < end
            for start, end in places
        )
        for span in predicted
    )
