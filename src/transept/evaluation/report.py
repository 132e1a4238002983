"""Scores with all conventions."""

from collections.abc import Sequence
from dataclasses import dataclass

from transept.errors import DataError
from transept.evaluation.bleu import Bootstrap
from transept.evaluation.conventions import chrf, sacre_bleu, tokenised_bleu
from transept.evaluation.reading import suspect, suspect_test_set
from transept.evaluation.scores import Report, SystemScores
from transept.text.moses import Language

BOOTSTRAP = Bootstrap()


@dataclass(frozen=True)
class System:
    """The translations of a test set by one system."""

    name: str
    hypotheses: Sequence[str]


def evaluate(
    system: System,
    references: Sequence[str],
    *,
    other: System | None = None,
    language: Language = "other",
    bootstrap: Bootstrap = BOOTSTRAP,
) -> Report:
    """Score a system with all conventions, and optionally compare it with another.

    Args:
        system: The system to score.
        references: The correct translations, in plain text, line by line.
        other: A second system, on the same sentences.
        language: The language of the translations, for the Moses tokenizer.
        bootstrap: The settings for intervals and p-values.
    """
    systems = [system] if other is None else [system, other]
    _check(systems, references)
    bleus = [
        sacre_bleu(),
        sacre_bleu("lower"),
        tokenised_bleu(language),
        tokenised_bleu(language, "split"),
    ]
    counts = [[bleu.count(each.hypotheses, references) for bleu in bleus] for each in systems]
    return Report(
        sentences=len(references),
        systems=tuple(
            SystemScores(
                name=each.name,
                scores=(
                    *map(bootstrap.score, bleus, counted),
                    chrf(each.hypotheses, references),
                ),
                warnings=suspect(each.hypotheses, references),
            )
            for each, counted in zip(systems, counts, strict=True)
        ),
        comparisons=tuple(map(bootstrap.compare, bleus, *counts)) if other else (),
        warnings=suspect_test_set(references),
    )


def _check(systems: Sequence[System], references: Sequence[str]) -> None:
    for system in systems:
        if len(system.hypotheses) != len(references):
            raise DataError(
                f"{system.name} has {len(system.hypotheses):,} lines, but there are "
                f"{len(references):,} references"
            )
    if not any(map(str.strip, references)):
        raise DataError("all references are empty")
