"""What a search returns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output."""

    ids: tuple[int, ...]
    """Its tokens, without the end symbol."""
    log_probability: float
    """log P(Y|X), the end symbol included where there is one."""
    score: float
    """What it is ranked by: log P(Y|X) / lp(Y)."""
    finished: bool = True
    """Whether it ends in the end symbol, and not at the maximum length."""
