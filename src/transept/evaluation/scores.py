"""Results. Every score is labelled with its convention.

BLEU of the same output differs by more than one point between conventions, so a number alone is
meaningless. `Score` and `Comparison` therefore require a `Convention`, which requires a name and a
signature.
"""

import math
from dataclasses import dataclass

from transept.version import __version__


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How a score is computed."""

    name: str
    """A readable name: `sacreBLEU`."""
    signature: str
    """Everything needed to compute the score again, in the format of sacreBLEU's signatures."""

    def __post_init__(self) -> None:
        if not self.name or not self.signature:
            raise ValueError("a convention needs a name and a signature")


@dataclass(frozen=True, kw_only=True)
class Interval:
    """The range of 95 % of the bootstrap samples."""

    low: float
    high: float
    resamples: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Breakdown:
    """The components of a BLEU score. Lengths are in tokens of its convention."""

    precisions: tuple[float, ...]
    """The n-gram precisions, n = 1 to 4, in per cent."""
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    length_ratio: float
    """Hypothesis length / reference length."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score from 0 to 100, with its convention."""

    convention: Convention
    value: float
    interval: Interval | None = None
    breakdown: Breakdown | None = None

    def __str__(self) -> str:
        return f"{self.convention.name} {self.value:.2f} ({self.convention.signature})"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The difference of two systems on the same sentences, and its significance."""

    convention: Convention
    difference: float
    """The first system's score minus the second's."""
    interval: Interval
    """The confidence interval of the difference."""
    p_value: float
    """The p-value of sacreBLEU's paired bootstrap test."""
    wins: float
    """The share of samples in which the first system scores higher; a tie counts half."""


@dataclass(frozen=True, kw_only=True)
class Perplexity:
    """The exponential of the mean −log p of given translations, without label smoothing.

    The end symbol of each sentence counts as a token and, in the perplexity per word, as a word.
    Words are separated by white space. Values per token are comparable only between models with the
    same vocabulary. Values per word are comparable between all models, on the same text.
    """

    convention: Convention
    value: float
    units: int
    """The number of tokens or words in the mean."""

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
    """The results of one or two systems on a test set."""

    sentences: int
    systems: tuple[SystemScores, ...]
    comparisons: tuple[Comparison, ...] = ()
    """Comparisons of the first system with the second, if there are two."""
    warnings: tuple[str, ...] = ()
    """Warnings about the test set."""
    perplexities: tuple[Perplexity, ...] = ()
    """The perplexities of the references, if the first system is a model."""


def perplexities(
    log_probability: float, *, tokens: int, words: int, sentences: int, vocabulary: str
) -> tuple[Perplexity, Perplexity]:
    """The perplexity per token and per word.

    Args:
        log_probability: The sum over all sentences, natural logarithm.
        tokens: The number of tokens, including end symbols.
        words: The number of words, without end symbols.
        sentences: The number of sentences, and so of end symbols.
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
