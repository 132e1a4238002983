"""Scores of all sentences: those of evalb, and those that also count erroneous sentences."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from transept.errors import DataError
from transept.evaluation.evalb import COLLINS, Parameters, Problem, SentenceScore, score_sentence
from transept.evaluation.reading import FEW, MANY
from transept.evaluation.scores import Convention
from transept.text.trees import ROOTS
from transept.version import __version__

_FIRST_LABEL: Final = re.compile(r"\s*\(([^\s()]*)", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """evalb's summary, of valid sentences only. Rates are in per cent."""

    sentences: int
    errors: int
    skipped: int
    valid: int
    recall: float
    precision: float
    f1: float
    """0 if precision and recall are 0. evalb prints `nan` in this case."""
    complete_match: float
    average_crossing: float
    """Crossing brackets per sentence, not in per cent."""
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class WholeSummary:
    """A summary of all sentences, including errors and skipped ones.

    In these, all gold brackets count as missed and all predicted ones as wrong. Rates are in per
    cent.
    """

    recall: float
    precision: float
    f1: float
    complete_match: float
    tagging_accuracy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """The two summaries of a set of sentences."""

    evalb: Summary
    whole: WholeSummary


@dataclass(frozen=True, kw_only=True)
class ParseReport:
    """The scores of predicted trees."""

    convention: Convention
    all: Scope
    short: Scope
    """Sentences of at most `cutoff` words."""
    cutoff: int
    problems: dict[Problem, int]
    """How often each problem occurred, on either side."""
    first_problems: tuple[tuple[int, Problem], ...]
    """The first few problems with their line numbers, from 1."""
    stopped_at: int | None
    """The line at which evalb would have stopped without a result."""
    sentences: tuple[SentenceScore, ...]


def evaluate_parses(
    gold: Sequence[str], predicted: Sequence[str], parameters: Parameters = COLLINS
) -> ParseReport:
    """Score predicted trees against gold trees, line by line."""
    if len(gold) != len(predicted):
        raise DataError(
            f"{len(gold):,} gold lines and {len(predicted):,} predicted lines: "
            "the numbers must be equal"
        )
    sentences = tuple(
        score_sentence(theirs, ours, parameters)
        for theirs, ours in zip(gold, predicted, strict=True)
    )
    found = [
        (line, problem)
        for line, sentence in enumerate(sentences, start=1)
        for problem in sentence.problems
    ]
    return ParseReport(
        convention=Convention(
            name=f"evalb, {parameters.name}",
            signature=f"{parameters.signature}|version:transept-{__version__}",
        ),
        all=_scope(sentences),
        short=_scope([each for each in sentences if each.length <= parameters.cutoff]),
        cutoff=parameters.cutoff,
        problems=dict(Counter(problem for _, problem in found)),
        first_problems=tuple(found[:10]),
        stopped_at=_stopping_line(found, parameters.max_errors),
        sentences=sentences,
    )


def _scope(sentences: Sequence[SentenceScore]) -> Scope:
    return Scope(evalb=_summary(sentences), whole=_whole_summary(sentences))


def _summary(sentences: Sequence[SentenceScore]) -> Summary:
    valid = [each for each in sentences if each.status == "valid"]
    whole = _whole_summary(valid)
    return Summary(
        sentences=len(sentences),
        errors=sum(each.status == "error" for each in sentences),
        skipped=sum(each.status == "skipped" for each in sentences),
        valid=len(valid),
        recall=whole.recall,
        precision=whole.precision,
        f1=whole.f1,
        complete_match=whole.complete_match,
        average_crossing=sum(each.crossing for each in valid) / len(valid) if valid else 0.0,
        no_crossing=_per_cent(sum(each.crossing == 0 for each in valid), len(valid)),
        two_or_less_crossing=_per_cent(sum(each.crossing <= 2 for each in valid), len(valid)),
        tagging_accuracy=whole.tagging_accuracy,
    )


def _whole_summary(sentences: Sequence[SentenceScore]) -> WholeSummary:
    matched = sum(each.matched for each in sentences)
    recall = _per_cent(matched, sum(each.gold for each in sentences))
    precision = _per_cent(matched, sum(each.predicted for each in sentences))
    return WholeSummary(
        recall=recall,
        precision=precision,
        f1=2 * precision * recall / (precision + recall) if matched else 0.0,
        complete_match=_per_cent(sum(each.complete for each in sentences), len(sentences)),
        tagging_accuracy=_per_cent(
            sum(each.right_tags for each in sentences), sum(each.words for each in sentences)
        ),
    )


def _per_cent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


def _stopping_line(problems: Iterable[tuple[int, Problem]], max_errors: int) -> int | None:
    """Evalb accepts max_errors + 1 errors and stops at the next one, and at any stray text."""
    for number, (line, problem) in enumerate(problems, start=1):
        if problem == "stray text" or number > max_errors + 1:
            return line
    return None


def suspect_roots(gold: Sequence[str], predicted: Sequence[str], parameters: Parameters) -> str:
    """A warning if only one side has root brackets, else an empty string.

    evalb counts a root like any other bracket, unless the parameters delete its label. If only one
    side has roots, by the convention of a treebank, every sentence has one wrong bracket.
    """
    theirs, ours = (_share(lines, parameters) for lines in (gold, predicted))
    which, effect = ("gold", "missed") if theirs > ours else ("predicted", "wrong")
    if max(theirs, ours) <= MANY or min(theirs, ours) >= FEW:
        return ""
    return (
        f"only the {which} trees have a root bracket, without a label or with one such as ROOT: it "
        f"counts as {effect} in every sentence; remove it"
    )


def _share(lines: Sequence[str], parameters: Parameters) -> float:
    """The share of trees whose first bracket is a root that is not deleted."""
    labels = [found[1] for line in lines if (found := _FIRST_LABEL.match(line))]
    roots = sum(label in ROOTS and not parameters.deletes_bracket(label) for label in labels)
    return roots / len(labels) if labels else 0.0
