"""What a result says. There is no number here without the convention that it was counted by.

BLEU of the same output differs by more than a point between conventions, so a value alone means
nothing: `Score` and `Comparison` cannot be made without a `Convention`, nor that without a name and
a signature.
"""

import math
from dataclasses import dataclass

from transept.version import __version__


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How a score is counted."""

    name: str
    """For people: `sacreBLEU`."""
    signature: str
    """Everything needed to count it again, in the form of sacreBLEU's signatures."""

    def __post_init__(self) -> None:
        if not self.name or not self.signature:
            raise ValueError("a convention has a name and a signature")


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Where 95 % of a bootstrap's resamples lie."""

    low: float
    high: float
    resamples: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """What a BLEU is the product of; lengths are in tokens of its convention."""

    precisions: tuple[float, ...]
    """Of n-grams, n = 1 to 4, in per cent."""
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    length_ratio: float
    """Hypothesis to reference."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """A value from 0 to 100, by a convention."""

    convention: Convention
    value: float
    interval: Interval | None = None
    breakdown: Breakdown | None = None

    def __str__(self) -> str:
        return f"{self.convention.name} {self.value:.2f} ({self.convention.signature})"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How sure it is that one system scores higher than another on the same sentences."""

    convention: Convention
    difference: float
    """The first system's score less the second's."""
    interval: Interval
    """Of the difference."""
    p_value: float
    """How likely chance alone makes a difference this large, by sacreBLEU's paired bootstrap."""
    wins: float
    """Share of the resamples in which the first system scores higher; a tie counts half."""


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """Exp of the mean −log p of given translations, by a convention. It is never smoothed.

    Each sentence ends in a symbol that the model must predict too. This counts as a token and, in
    the perplexity per word, as a word. Words are what stands between white space. Values per token
    can be compared only between models with the same vocabulary; values per word between any
    models, on the same text.
    """

    convention: Convention
    value: float
    units: int
    """The tokens, or words, that the mean was taken over."""

    def __str__(self) -> str:
        return f"{self.convention.name} {self.value:.3f} ({self.convention.signature})"


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """The scores of one system's output."""

    name: str
    scores: tuple[Score, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything about one or two systems on a test set."""

    sentences: int
    systems: tuple[SystemScores, ...]
    comparisons: tuple[Comparison, ...] = ()
    """Of the first system with the second, where there are two."""
    warnings: tuple[str, ...] = ()
    """What is wrong with the test set, whatever the system."""
    perplexities: tuple[Perplexity, ...] = ()
    """Of the references, by the first system, if that is a model."""


def perplexities(
    log_probability: float, *, tokens: int, words: int, sentences: int, vocabulary: str
) -> tuple[Perplexity, Perplexity]:
    """Per token, and per word.

    Args:
        log_probability: The natural logarithm, of all sentences together.
        tokens: Of all sentences, end symbols included.
        words: Of all sentences, end symbols not included.
        sentences: How many end symbols there are.
        vocabulary: The vocabulary of the tokens, for the signature.
    """
    return (
        _perplexity("token", f"tok:{vocabulary}", log_probability, tokens),
        _perplexity("word", "tok:white-space", log_probability, words + sentences),
    )


def _perplexity(unit: str, tokens: str, log_probability: float, units: int) -> Perplexity:
    signature = f"per:{unit}|{tokens}|eos:yes|smooth:none|version:transept-{__version__}"
    return Perplexity(
        convention=Convention(name=f"perplexity per {unit}", signature=signature),
        value=math.exp(min(-log_probability / max(1, units), 700.0)),
        units=units,
    )
