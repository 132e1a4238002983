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
    """An output is at most so many times as long as its input …"""
    max_length_extra: int = 50
    """… plus so many tokens. Both count the end symbol."""

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
