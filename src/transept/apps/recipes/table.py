"""The results of a sweep as a table: means over seeds, and their order beside that of Table 3."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from statistics import NormalDist, correlation, fmean, variance
from types import MappingProxyType
from typing import Final, Literal

PAPER: Final[Mapping[str, tuple[float, float]]] = MappingProxyType({
    "base": (4.92, 25.8),
    "A-h1": (5.29, 24.9), "A-h4": (5.00, 25.5), "A-h16": (4.91, 25.8), "A-h32": (5.01, 25.4),
    "B-dk16": (5.16, 25.1), "B-dk32": (5.01, 25.4),
    "C-N2": (6.11, 23.7), "C-N4": (5.19, 25.3), "C-N8": (4.88, 25.5), "C-d256": (5.75, 24.5),
    "C-d1024": (4.66, 26.0), "C-ff1024": (5.12, 25.4), "C-ff4096": (4.75, 26.2),
    "D-drop0": (5.77, 24.6), "D-drop2": (4.95, 25.5), "D-ls0": (4.67, 25.3), "D-ls2": (5.47, 25.7),
    "E-learned": (4.92, 25.7), "big": (4.33, 26.4),
})  # fmt: skip
"""Perplexity and BLEU of the rows of Table 3, in its order."""
Column = Literal["perplexity", "bleu"]
COLUMNS: Final[tuple[Column, ...]] = ("perplexity", "bleu")
"""Their order in PAPER."""


@dataclass(frozen=True, slots=True)
class RowResult:
    """The result of a row and seed on the first test set with perplexity."""

    row: str
    seed: int
    steps: int
    parameters: int
    perplexity: float
    bleu: float
    seconds: float
    """The duration of the training."""
    evaluation_seconds: float
    """The duration of decoding and scoring."""
    device: str
    commit: str | None
    corpora: str
    """The first digits of a SHA-256 of the tokenized corpora."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over seeds, with half of the width of its 95 % confidence interval."""

    value: float
    margin: float | None
    """None if no row has two seeds."""

    def __sub__(self, other: "Mean") -> "Mean":
        """The difference of two rows, whose seeds are independent."""
        if self.margin is None or other.margin is None:
            return Mean(self.value - other.value, None)
        return Mean(self.value - other.value, hypot(self.margin, other.margin))

    def __str__(self) -> str:
        return f"{self.value:.2f}" + ("" if self.margin is None else f" ± {self.margin:.2f}")


@dataclass(frozen=True, slots=True)
class RowSummary:
    """The results of a row over its seeds."""

    row: str
    n_seeds: int
    steps: int
    parameters: int
    perplexity: Mean
    bleu: Mean


def summarize(results: Sequence[RowResult]) -> list[RowSummary]:
    """Summarize the results of each row, in the order of the results."""
    rows: dict[str, list[RowResult]] = {}
    for one in results:
        rows.setdefault(one.row, []).append(one)
    perplexities = _means([[one.perplexity for one in row] for row in rows.values()])
    scores = _means([[one.bleu for one in row] for row in rows.values()])
    return [
        RowSummary(name, len(row), row[0].steps, row[0].parameters, perplexity, bleu)
        for (name, row), perplexity, bleu in zip(rows.items(), perplexities, scores, strict=True)
    ]


def _means(rows: Sequence[Sequence[float]]) -> Iterator[Mean]:
    """The mean of each row.

    Three seeds say little about the variance of one row. So the rows share one estimate of it.
    """
    several = [row for row in rows if len(row) > 1]
    freedom = sum(len(row) - 1 for row in several)
    for row in rows:
        margin = None
        if several:
            pooled = sum((len(each) - 1) * variance(each) for each in several) / freedom
            margin = _t_quantile(freedom) * sqrt(pooled / len(row))
        yield Mean(fmean(row), margin)


def _t_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's t distribution, by its expansion around the normal one."""
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return sum((term / freedom**power for power, term in enumerate(terms)), 0.0)


def agreement(rows: Sequence[RowSummary], column: Column = "perplexity") -> float | None:
    """Spearman's rank correlation of a column with that of Table 3.

    None if fewer than three rows are in Table 3, or if all have the same value.
    """
    known = [row for row in rows if row.row in PAPER]
    ours = _ranks([getattr(row, column).value for row in known])
    if len(known) < 3 or len({*ours}) == 1:
        return None
    return correlation(ours, _ranks([PAPER[row.row][COLUMNS.index(column)] for row in known]))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value. Equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]
