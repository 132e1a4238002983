"""Labelled bracketing scores of one sentence, by the rules of evalb (section 6.3).

In reading order: `Parameters` (the contents of .prm files), `read_side` (parses a line as evalb
does: every line is a sentence, even with errors) and `score_sentence` (compares two lines).
Comments note undocumented behaviour of evalb, found by experiment. Only its fixed limits (5,000
bytes per line, 200 words or brackets per sentence, 20 quotation marks) are not implemented: beyond
them evalb reads another sentence, or arbitrary memory.
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
    """evalb's parameters. The defaults are those of evalb without a parameter file."""

    name: str = "none"
    """The name to print with a score."""
    bracketing: Bracketing = "labelled"
    """Whether labels must match, or only the words of a bracket."""
    deleted: frozenset[str] = frozenset()
    """Words with these tags are removed, and brackets with these labels, but not their words."""
    deleted_for_length: frozenset[str] = frozenset()
    """Words with these tags do not count for the length of the sentence."""
    equal_labels: Pairs = frozenset()
    """Pairs of labels, or of tags, that count as equal."""
    equal_words: Pairs = frozenset()
    """Pairs of words that count as equal."""
    cutoff: int = 40
    """Sentences up to this length are also scored separately."""
    max_errors: int = 10
    """evalb stops without a result at error max_errors + 2."""

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels count as equal. This need not be transitive."""
        pairs = self.equal_labels
        return one == other or (one, other) in pairs or (other, one) in pairs

    def deletes_bracket(self, label: str) -> bool:
        """Whether brackets with this label, or with an equal one, are removed."""
        return label in self.deleted or any(
            (one == label and other in self.deleted) or (other == label and one in self.deleted)
            for one, other in self.equal_labels
        )

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words count as equal."""
        pairs = self.equal_words
        return one == other or (one, other) in pairs or (other, one) in pairs

    @property
    def signature(self) -> str:
        """All parameters that affect a score."""
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
"""The contents of COLLINS.prm: the parameters of nearly all published scores, and the paper."""


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file. Lines that evalb silently ignores are errors here."""
    found: dict[str, Any] = {"name": path.name.removesuffix(".prm")}
    for number, line in enumerate(read_text(path), start=1):
        if line.startswith("#") or len(line.rstrip()) < 3:  # evalb also skips short lines
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
            problem = f"{keyword} needs {_KEYWORDS[keyword][2]}, got {' '.join(values)!r}"
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
"""Why a sentence is an error. At stray text, evalb repeats its error message until it stops."""

# White space as in C. A bracket with a space and at most one run of characters is a word.
# `(NN dog )` has an additional space and is not.
_TOKEN: Final = re.compile(r"\(([^\s()]*+)(?:\s++([^\s()]*+)\))?|(\))|[^\s()]++", re.ASCII)


@dataclass(slots=True)
class Span:
    """A bracket and its range of words, not counting deleted ones."""

    label: str
    start: int
    end: int = -1


@dataclass(slots=True)
class TreeSide:
    """One side of a comparison: the words that are not deleted, and all brackets."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    length: int = 0
    """The number of words, including deleted ones, without those in `deleted_for_length`."""
    problems: list[Problem] = field(default_factory=list)


def read_side(line: str, parameters: Parameters) -> TreeSide:
    """Parse a line. It may have one tree, several or none."""
    side = TreeSide()
    open_spans: list[Span] = []
    closed_too_often = stray_text = False
    for token in _TOKEN.finditer(line):
        label, word, close = token.groups()
        if word is not None:
            side.length += label not in parameters.deleted_for_length
            if label not in parameters.deleted:
                side.words.append(word)
                side.tags.append(label)
        elif label is not None:
            open_spans.append(Span(label, len(side.words)))
            side.spans.append(open_spans[-1])
        elif close and open_spans:
            open_spans.pop().end = len(side.words)
        elif close:
            closed_too_often = True
        else:
            stray_text = True
    for span in open_spans:
        span.end = len(side.words)
    if stray_text:
        side.problems.append("stray text")
    if open_spans or closed_too_often:
        side.problems.append("unbalanced brackets")
    return side


# --- scoring ---------------------------------------------------------------------------------

Status = Literal["valid", "error", "skipped"]

_FUNCTION: Final = re.compile("[-=].*", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceScore:
    """The counts of a sentence, without deleted words and brackets."""

    length: int
    """The length of the gold sentence, to compare with the cutoff."""
    status: Status
    """evalb counts only `valid` sentences. It skips sentences without predicted words."""
    problems: tuple[Problem, ...] = ()
    """Why it is an error, or would be if it were not skipped."""
    gold_problems: tuple[Problem, ...] = ()
    """The problems of the gold tree."""
    gold: int
    """The number of brackets of the gold tree."""
    predicted: int
    """The number of brackets of the predicted tree."""
    matched: int = 0
    """The number of matching brackets. Each bracket matches at most one other."""
    crossing: int = 0
    """The number of predicted brackets that cross a gold one."""
    words: int
    """The number of words of the gold tree."""
    right_tags: int = 0
    """The number of words with the correct tag."""

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
    """A line without predicted words is skipped, even if its brackets are unbalanced."""
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
    """The brackets that are neither empty nor deleted, with labels without function tags."""
    counted = []
    for span in spans:
        # Tags of words keep their functions. A label that begins with a hyphen becomes empty.
        label = _FUNCTION.sub("", span.label)
        if span.start < span.end and not parameters.deletes_bracket(label):
            counted.append(Span(label, span.start, span.end))
    return counted


def _matched(gold: Iterable[Span], predicted: Iterable[Span], parameters: Parameters) -> int:
    """Match each gold bracket with the first predicted one that is not matched yet."""
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
    ranges = {(span.start, span.end) for span in gold}
    return sum(
        any(
            start < span.start < end < span.end or span.start < start < span.end < end
            for start, end in ranges
        )
        for span in predicted
    )
