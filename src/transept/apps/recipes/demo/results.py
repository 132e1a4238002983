"""What came of a demo: sentences to show, and scores, kept as JSON."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transept.evaluation.conventions import sacre_bleu
from transept.evaluation.scores import Convention, Score
from transept.runtime.storage import write_json


class SampleTranslation(NamedTuple):
    """A sentence, its translation, and what it should have been."""

    source: str
    ours: str
    reference: str


def choose(samples: Sequence[SampleTranslation], n: int = 8) -> list[SampleTranslation]:
    """Some of them, by chance alone."""
    chance = random.Random(0)
    return sorted(samples, key=lambda _: chance.random())[:n]


def most_telling(samples: Sequence[SampleTranslation]) -> SampleTranslation | None:
    """The one to draw: with words to look at, but not more than fit on a line."""
    said = [sample for sample in samples if sample.ours.strip()]
    return min(said, key=lambda sample: abs(len(sample.source.split()) - 9), default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """How good the translations of the test set are."""

    bleu: Score
    exact_match: float
    """The share of them that are the reference, letter for letter."""
    sentences: int
    weights: str
    """The sha256 of the weights that made them."""

    def save(self, path: Path) -> None:
        """Write them as JSON."""
        table = {
            self.bleu.convention.name: self.bleu.value,
            "signature": self.bleu.convention.signature,
            "exact_match": self.exact_match,
            "sentences": self.sentences,
            "weights": self.weights,
        }
        write_json(path, table)

    @classmethod
    def load(cls, path: Path) -> "Results | None":
        """What `save` wrote; None where there is nothing that can be read."""
        convention = sacre_bleu().convention
        try:
            table = json.loads(path.read_bytes())
            return cls(
                bleu=Score(
                    convention=Convention(name=convention.name, signature=table["signature"]),
                    value=table[convention.name],
                ),
                exact_match=table["exact_match"],
                sentences=table["sentences"],
                weights=table["weights"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None


def measure(hypotheses: Sequence[str], references: Sequence[str], weights: str) -> Results:
    """Score translations."""
    right = sum(map(str.__eq__, hypotheses, references))
    return Results(
        bleu=sacre_bleu().measure(hypotheses, references),
        exact_match=right / len(references),
        sentences=len(references),
        weights=weights,
    )
