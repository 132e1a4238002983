"""How outputs are searched for. No torch here."""

from dataclasses import dataclass

from transept.config import Checks


@dataclass(frozen=True, kw_only=True)
class BeamConfig:
    """Section 6.1: beam 4, α = 0.6. Sampling does not use these settings."""

    beam_size: int = 4
    """Hypotheses kept alive; 1 is greedy search."""
    length_penalty: float = 0.6
    """The α of Wu et al.: score = log P(Y|X) / ((5 + |Y|) / 6)^α."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "beam_size")
        checks.at_least(0, "length_penalty")
        checks.done()


@dataclass(frozen=True, kw_only=True)
class OutputConfig:
    """Section 6.1: at most 50 tokens more than the input. Search and sampling both use these."""

    n_best: int = 1
    """How many outputs to return for each input; at most as many as the beam is wide."""
    max_length_factor: float = 1.0
    """The longest output, as a multiple of the length of the input, before the extra tokens."""
    max_length_extra: int = 50
    """How many tokens an output may have beyond that. Both lengths count the end symbol."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "n_best")
        checks.at_least(0, "max_length_factor", "max_length_extra")
        checks.that(
            self.max_length_factor > 0 or self.max_length_extra > 0,
            "max_length_extra",
            "leaves no room for an output; increase it, or the factor",
        )
        checks.done()

    def max_length(self, source_length: int) -> int:
        """The longest output of an input, end symbols counted on both sides."""
        return max(1, int(self.max_length_factor * source_length) + self.max_length_extra)


@dataclass(frozen=True, kw_only=True)
class SearchConfig(OutputConfig, BeamConfig):
    """Section 6.1: beam 4, α = 0.6, at most 50 tokens more than the input."""

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
    """How to draw.

    Example:
        >>> model, drawing = transept.load("en-de"), SamplingConfig(top_k=10, seed=1)
        >>> again = [model.translate("It rains.", sampling=drawing).text for _ in range(2)]
        >>> again[0] == again[1]
        True
    """

    temperature: float = 1.0
    """Below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int | None = None
    """Draw only among this many of the likeliest tokens. Default: all."""
    top_p: float | None = None
    """Draw only among the likeliest tokens that together have at least this probability.
    Default: all tokens."""
    seed: int = 0
    """The same seed gives a sentence the same draws, whatever else is translated with it."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(self.temperature > 0, "temperature", "must be more than 0")
        top_k, top_p = self.top_k, self.top_p
        checks.that(top_k is None or top_k >= 1, "top_k", "must be at least 1, or left out")
        checks.that(top_p is None or 0 < top_p <= 1, "top_p", "must be in (0, 1], or left out")
        checks.done()
