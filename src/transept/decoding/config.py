"""Options of search and sampling. Does not import torch."""

from dataclasses import dataclass

from transept.config import Checks


@dataclass(frozen=True, kw_only=True)
class BeamConfig:
    """Section 6.1: beam size 4, α = 0.6. Sampling does not use these settings."""

    beam_size: int = 4
    """Number of live hypotheses; 1 is greedy search."""
    length_penalty: float = 0.6
    """α of Wu et al.: score = log P(Y|X) / ((5 + |Y|) / 6)^α."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "beam_size")
        checks.at_least(0, "length_penalty")
        checks.done()


@dataclass(frozen=True, kw_only=True)
class OutputConfig:
    """Section 6.1: at most 50 tokens more than the input. Used by search and sampling."""

    n_best: int = 1
    """Number of outputs per input; at most the beam size."""
    max_length_factor: float = 1.0
    """Maximum output length as a multiple of the input length, before the extra tokens."""
    max_length_extra: int = 50
    """Tokens added to that maximum output length. Both lengths include the end symbol."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "n_best")
        checks.at_least(0, "max_length_factor", "max_length_extra")
        checks.that(
            self.max_length_factor > 0 or self.max_length_extra > 0,
            "max_length_extra",
            "allows no output; increase it or max_length_factor",
        )
        checks.done()

    def max_length(self, source_length: int) -> int:
        """Maximum output length for an input. Both lengths include the end symbol."""
        return max(1, int(self.max_length_factor * source_length) + self.max_length_extra)


@dataclass(frozen=True, kw_only=True)
class SearchConfig(OutputConfig, BeamConfig):
    """Section 6.1: beam size 4, α = 0.6, at most 50 tokens more than the input."""

    def __post_init__(self) -> None:
        BeamConfig.__post_init__(self)
        OutputConfig.__post_init__(self)
        checks = Checks(self)
        checks.that(
            self.n_best <= self.beam_size,
            "n_best",
            f"must not be more than the beam size, {self.beam_size}",
        )
        checks.done()


@dataclass(frozen=True, kw_only=True)
class SamplingConfig:
    """Options of random sampling.

    Example:
        >>> model, sampling = transept.load("en-de"), SamplingConfig(top_k=10, seed=1)
        >>> texts = [model.translate("It rains.", sampling=sampling).text for _ in range(2)]
        >>> texts[0] == texts[1]
        True
    """

    temperature: float = 1.0
    """Below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int | None = None
    """Sample only from the k likeliest tokens. Default: all."""
    top_p: float | None = None
    """Sample only from the likeliest tokens that together have at least this probability.
    Default: all tokens."""
    seed: int = 0
    """The same seed gives the same samples of a sentence, in any batch."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(self.temperature > 0, "temperature", "must be more than 0")
        top_k, top_p = self.top_k, self.top_p
        checks.that(top_k is None or top_k >= 1, "top_k", "must be at least 1, or left out")
        checks.that(top_p is None or 0 < top_p <= 1, "top_p", "must be in (0, 1], or left out")
        checks.done()
