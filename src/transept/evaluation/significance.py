"""How much of a score, or of a difference, is due to which sentences happened to be tested.

The test set is drawn anew, with replacement, many times over (Koehn 2004); a resample's score
follows from sums of the sentences' counts. Draws, interval and p-value are sacreBLEU's
(`--confidence`, `--paired-bs`), the default seed too, so that its numbers come out.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from transept.evaluation.bleu import Bleu, Counts
from transept.evaluation.scores import Comparison, Interval, Score


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """How often to draw, and from which seed. The same seed draws the same sentences."""

    resamples: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ValueError(f"{self.resamples} resamples are none; draw at least 1")

    def score(self, bleu: Bleu, counts: Counts) -> Score:
        """The score with its interval."""
        return replace(bleu.score(counts), interval=self._interval(self._values(bleu, counts)))

    def compare(self, bleu: Bleu, first: Counts, second: Counts) -> Comparison:
        """Whether two systems differ, by the same draws for both."""
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
        """Without the lowest and the highest 2.5 % of the values."""
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
        # Row by row, since all draws at once are gigabytes for a large test set. Floats, since
        # only they are multiplied fast; they hold whole numbers to 2⁵³.
        weighable = counts.astype(np.float64)
        sums = np.empty((self.resamples, counts.shape[1]))
        for row in range(self.resamples):
            drawn = random.integers(n_sentences, size=n_sentences)
            sums[row] = np.bincount(drawn, minlength=n_sentences) @ weighable
        return sums


def _p_value(differences: NDArray[np.float64], difference: float) -> float:
    """How often the size of the difference strays from its mean by as much as the difference.

    As sacreBLEU has it, so that p-values can be compared. It counts one side only: about half of
    what a two-sided test says where a difference is clear, and less where it is not, so that the
    interval and the wins deserve a look too. One exception: systems that score the same are not
    told apart (p = 1), where sacreBLEU takes every tie for evidence (p = 1 / 1001).
    """
    sizes = np.abs(differences)
    strays = int(np.sum(sizes - sizes.mean() >= abs(difference)))
    return (strays + 1) / (len(differences) + 1)
