"""Corpus BLEU with one reference (Papineni et al. 2002), for any tokenization.

    BLEU = BP · exp(¼ Σ log p_n),  n = 1 … 4        BP = min(1, exp(1 − |reference| / |hypothesis|))

p_n is the share of the corpus's n-grams that are also in the reference. Each n-gram counts at most
as often as it occurs there. BLEU is computed from ten sums over sentences, which makes resampling
cheap. `Bootstrap` measures how much a score, or a difference of scores, depends on the choice of
test sentences: it resamples the test set with replacement many times (Koehn 2004). Samples,
intervals and p-values are those of sacreBLEU (`--confidence`, `--paired-bs`), with the same default
seed, so the numbers agree.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from transept.evaluation.scores import Breakdown, Comparison, Convention, Interval, Score

MAX_ORDER = 4
Counts = NDArray[np.int64]
"""[sentence, 10]: tokens of the hypothesis, tokens of the reference, n-grams found in the
reference for n = 1 to 4, and n-grams in all for n = 1 to 4."""

Smoothing = Literal["none", "exp"]
"""If no n-gram of some n matches: with `none` the score is zero, as in multi-bleu.perl; `exp` sets
the count to ½, for the next such n to ¼ and so on, as in mteval-v13a and sacreBLEU."""


@dataclass(frozen=True, kw_only=True)
class Bleu:
    """BLEU with one convention."""

    convention: Convention
    tokenize: Callable[[str], Sequence[str]]
    smoothing: Smoothing = "none"

    def measure(self, hypotheses: Iterable[str], references: Iterable[str]) -> Score:
        """Score a corpus."""
        return self.score(self.count(hypotheses, references))

    def count(self, hypotheses: Iterable[str], references: Iterable[str]) -> Counts:
        """The counts of each sentence."""
        pairs = zip(hypotheses, references, strict=True)
        rows = [count_matches(self.tokenize(ours), self.tokenize(theirs)) for ours, theirs in pairs]
        return np.array(rows, dtype=np.int64).reshape(-1, 2 + 2 * MAX_ORDER)

    def score(self, counts: Counts) -> Score:
        """The corpus score, computed by sacreBLEU."""
        sums: list[int] = counts.sum(axis=0).tolist()
        result = BLEU.compute_bleu(
            correct=sums[2 : 2 + MAX_ORDER],
            total=sums[2 + MAX_ORDER :],
            sys_len=sums[0],
            ref_len=sums[1],
            smooth_method=self.smoothing,
        )
        breakdown = Breakdown(
            precisions=tuple(result.precisions),
            brevity_penalty=result.bp,
            hypothesis_length=result.sys_len,
            reference_length=result.ref_len,
            length_ratio=float(result.ratio),
        )
        # Rounding may give 100.00000000000004 for a perfect match.
        value = min(result.score, 100.0)
        return Score(convention=self.convention, value=value, breakdown=breakdown)

    def values(self, sums: NDArray[Any]) -> NDArray[np.float64]:
        """BLEU for each row of sums [n, 10]: like `score`, for many corpora at once."""
        hypothesis, reference = sums[:, 0].astype(float), sums[:, 1].astype(float)
        found = sums[:, 2 : 2 + MAX_ORDER].astype(float)
        total = sums[:, 2 + MAX_ORDER :].astype(float)
        any_found = found.any(axis=1)
        if self.smoothing == "exp":
            missed = np.cumsum(found == 0, axis=1)
            found = np.where(found == 0, 0.5**missed, found)
        # If a count is zero, its logarithm is −∞ and the score is zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            precision = np.where(total > 0, found / total, 0.0)
            brevity = np.minimum(0.0, 1.0 - reference / hypothesis)
            value = 100.0 * np.exp(brevity + np.log(precision).mean(axis=1))
        return np.where(any_found, np.minimum(value, 100.0), 0.0)


def count_matches(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """A row of `Counts` for one sentence."""
    found, total = [], []
    for order in range(1, MAX_ORDER + 1):
        ours, theirs = _ngrams(hypothesis, order), _ngrams(reference, order)
        found.append(sum(min(n, theirs[ngram]) for ngram, n in ours.items() if ngram in theirs))
        total.append(max(len(hypothesis) - order + 1, 0))
    return [len(hypothesis), len(reference), *found, *total]


def _ngrams(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """Bootstrap resampling. The same seed gives the same samples."""

    resamples: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ValueError(f"resamples must be at least 1, not {self.resamples}")

    def score(self, bleu: Bleu, counts: Counts) -> Score:
        """The score with its confidence interval."""
        return replace(bleu.score(counts), interval=self._interval(self._values(bleu, counts)))

    def compare(self, bleu: Bleu, first: Counts, second: Counts) -> Comparison:
        """Compare two systems on the same samples (paired bootstrap)."""
        difference = bleu.score(first).value - bleu.score(second).value
        differences = self._values(bleu, first) - self._values(bleu, second)
        return Comparison(
            convention=bleu.convention,
            difference=difference,
            interval=self._interval(differences),
            p_value=_p_value(differences, difference),
            wins=float(np.mean(differences > 0) + np.mean(differences == 0) / 2),
        )

    def _interval(self, values: NDArray[np.float64]) -> Interval:
        """The range without the lowest and the highest 2.5 % of the values."""
        ordered = np.sort(values)
        cut = len(ordered) // 40
        return Interval(
            low=float(ordered[cut]),
            high=float(ordered[-1 - cut]),
            resamples=self.resamples,
            seed=self.seed,
        )

    def _values(self, bleu: Bleu, counts: Counts) -> NDArray[np.float64]:
        """The score of each resample."""
        return bleu.values(self._sums(counts))

    def _sums(self, counts: Counts) -> NDArray[np.float64]:
        """The counts of each resample [resample, 10]."""
        random = np.random.default_rng(self.seed)
        n_sentences = len(counts)
        # Row by row, since all samples together would take gigabytes for a large test set. Floats,
        # since their products are faster; they represent integers up to 2⁵³ exactly.
        float_counts = counts.astype(np.float64)
        sums = np.empty((self.resamples, counts.shape[1]))
        for row in range(self.resamples):
            drawn = random.integers(n_sentences, size=n_sentences)
            sums[row] = np.bincount(drawn, minlength=n_sentences) @ float_counts
        return sums


def _p_value(differences: NDArray[np.float64], difference: float) -> float:
    """The share of samples whose |difference| exceeds the mean by at least the observed one.

    Computed as in sacreBLEU, so that p-values are comparable. The test is one-sided. For a clear
    difference, p is about half that of a two-sided test, otherwise less, so consider the interval
    and the wins too. One exception: for systems with equal scores, p is 1. sacreBLEU counts every
    tie as evidence (p = 1 / 1001).
    """
    sizes = np.abs(differences)
    exceeding = int(np.sum(sizes - sizes.mean() >= abs(difference)))
    return (exceeding + 1) / (len(differences) + 1)
