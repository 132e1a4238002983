"""Labelled bracketing of one sentence by evalb's rules (section 6.3).

In reading order: `Parameters` (what counts, as .prm files say it), `read_side` (a line as evalb
sees it: whatever is on it is a sentence, with whatever is wrong with it) and `score_sentence` (two
lines compared). Comments note what was found by trying evalb and is not in its documentation. Only
its fixed sizes (5,000 bytes per line, 200 words or brackets per sentence, 20 quotation marks) are
not followed: beyond them it reads another sentence, or arbitrary memory.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from transept.config import did_you_mean
from transept.errors import DataError
from transept.text.files import describe, read_text

Pairs = frozenset[tuple[str, str]]
Bracketing = Literal["labelled", "unlabelled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """evalb's parameters. The defaults are its own: what it does without a parameter file."""

    name: str = "none"
    """For people: what to call these parameters beside a score."""
    bracketing: Bracketing = "labelled"
    """Whether a bracket must have the right label, or only the right words."""
    deleted: frozenset[str] = frozenset()
    """A word with such a tag is left out; so is a bracket with such a label, but not its words."""
    deleted_for_length: frozenset[str] = frozenset()
    """A word with such a tag does not make its sentence longer."""
    equal_labels: Pairs = frozenset()
    """Pairs of labels, or of tags, that count as equal."""
    equal_words: Pairs = frozenset()
    """Pairs of words that count as equal."""
    cutoff: int = 40
    """Sentences up to this length are also scored by themselves."""
    max_errors: int = 10
    """evalb gives up, without a result, at the second error beyond these."""

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels count as one. This need not be transitive."""
        pairs = self.equal_labels
        return one == other or (one, other) in pairs or (other, one) in pairs

    def deletes_bracket(self, label: str) -> bool:
        """Whether a bracket with this label, or one that is equal to it, is left out."""
        return label in self.deleted or any(
            (one == label and other in self.deleted) or (other == label and one in self.deleted)
            for one, other in self.equal_labels
        )

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words count as one."""
        pairs = self.equal_words
        return one == other or (one, other) in pairs or (other, one) in pairs

    @property
    def signature(self) -> str:
        """Everything that a score depends on."""
        return "|".join(
            (
                f"params:{self.name}",
                f"bracketing:{self.bracketing}",
                f"delete:{' '.join(sorted(self.deleted))}",
                f"length:{' '.join(sorted(self.deleted_for_length))}",
                f"labels:{_show(self.equal_labels)}",
                f"words:{_show(self.equal_words)}",
            )
        )


COLLINS: Final = Parameters(
    name="COLLINS",
    deleted=frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}),
    deleted_for_length=frozenset({"-NONE-"}),
    equal_labels=frozenset({("ADVP", "PRT")}),
)
"""What COLLINS.prm says: the parameters of nearly every published score, and the paper's."""


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file. What evalb would silently ignore is an error here."""
    found: dict[str, Any] = {"name": path.name.removesuffix(".prm")}
    for number, line in enumerate(read_text(path), start=1):
        if line.startswith("#") or len(line.rstrip()) < 3:  # evalb skips such short lines, too
            continue
        keyword, *values = line.split()
        try:
            if keyword == "DEBUG":
                continue
            name, read, _ = _KEYWORDS[keyword]
            value = read(*values)
        except KeyError:
            problem = f"unknown keyword {keyword!r}; {did_you_mean(keyword, _KEYWORDS)}"
        except (TypeError, ValueError):
            problem = f"{keyword} needs {_KEYWORDS[keyword][2]}, and has {' '.join(values)!r}"
        else:
            earlier = found.get(name)
            found[name] = earlier | value if isinstance(earlier, frozenset) else value
            continue
        raise DataError(f"{describe(path)}, line {number}: {problem}")
    return Parameters(**found)


def _show(pairs: Pairs) -> str:
    return " ".join(sorted("=".join(pair) for pair in pairs))


def _label(label: str) -> frozenset[str]:
    return frozenset({label})


def _pair(one: str, other: str) -> Pairs:
    return frozenset({(one, other)})


def _bracketing(number: str) -> Bracketing:
    return "labelled" if int(number) else "unlabelled"


_KEYWORDS: Final[dict[str, tuple[str, Callable[..., Any], str]]] = {
    "LABELED": ("bracketing", _bracketing, "0 or 1"),
    "DELETE_LABEL": ("deleted", _label, "one label"),
    "DELETE_LABEL_FOR_LENGTH": ("deleted_for_length", _label, "one label"),
    "EQ_LABEL": ("equal_labels", _pair, "two labels"),
    "EQ_WORD": ("equal_words", _pair, "two words"),
    "CUTOFF_LEN": ("cutoff", int, "a number"),
    "MAX_ERROR": ("max_errors", int, "a number"),
}


# --- reading ---------------------------------------------------------------------------------

Problem = Literal["stray text", "unbalanced brackets", "length differs", "words differ"]
"""Why a sentence is an error. At stray text evalb itself repeats its complaint until it stops."""

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
class TreeSide:
    """One side of a comparison: words that are not deleted, and every bracket."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
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
            side.length += label not in parameters.deleted_for_length
            if label not in parameters.deleted:
                side.words.append(word)
                side.tags.append(label)
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


# --- scoring ---------------------------------------------------------------------------------

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
