"""The quality of translations of the development set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from transept.evaluation.conventions import chrf, sacre_bleu


@dataclass(frozen=True, slots=True)
class Quality:
    """Scores of translations, and some of the translations."""

    bleu: float
    """sacreBLEU, cased, with the tokenizer 13a."""
    chrf: float
    """chrF2."""
    sentences: int
    seconds: float
    """The time that the translation took."""
    samples: Sequence[Mapping[str, str]]
    """`source`, `reference` and `output` of a few sentences."""

    @classmethod
    def of(
        cls,
        outputs: Sequence[str],
        sources: Sequence[str],
        references: Sequence[str],
        seconds: float,
        n_samples: int,
    ) -> "Quality":
        """Score translations. The samples are evenly spaced among them."""
        return cls(
            bleu=sacre_bleu().measure(outputs, references).value,
            chrf=chrf(outputs, references).value,
            sentences=len(outputs),
            seconds=seconds,
            samples=[
                {"source": sources[i], "reference": references[i], "output": outputs[i]}
                for i in evenly_spaced(n_samples, len(outputs))
            ],
        )


def evenly_spaced(n: int, total: int) -> Iterable[int]:
    """At most n indices below `total`, in order and evenly spaced."""
    n = min(n, total)
    return (i * total // n for i in range(n))
