"""Bootstrap resampling, compared with sacreBLEU."""

from collections.abc import Sequence

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest
from tests.unit.evaluation.systems import damaged, references

from transept.evaluation.bleu import Bootstrap
from transept.evaluation.conventions import sacre_bleu, tokenised_bleu

REFERENCES = references(120)
GOOD, FAIR, BAD = (
    damaged(REFERENCES, share, seed) for share, seed in ((0.10, 1), (0.12, 2), (0.3, 3))
)


@pytest.fixture(autouse=True)
def _usual_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)


def test_interval_agrees_with_sacrebleu() -> None:
    bleu = sacre_bleu()
    score = Bootstrap().score(bleu, bleu.count(GOOD, REFERENCES))
    expected = BLEU(force=True).corpus_score(GOOD, [REFERENCES], n_bootstrap=1000)
    assert score.value == pytest.approx(expected.score)
    assert score.interval is not None
    assert (score.interval.high - score.interval.low) / 2 == pytest.approx(expected._ci, abs=1e-6)
    assert score.interval.low < score.value < score.interval.high
    assert (score.interval.resamples, score.interval.seed) == (1000, 12345)


@pytest.mark.parametrize("other", [FAIR, BAD], ids=["fair", "bad"])
def test_p_value_agrees_with_sacrebleu(other: list[str]) -> None:
    bleu = sacre_bleu()
    comparison = Bootstrap().compare(
        bleu, bleu.count(GOOD, REFERENCES), bleu.count(other, REFERENCES)
    )
    systems: list[tuple[str, Sequence[str]]] = [("good", GOOD), ("other", other)]
    metric = BLEU(references=[REFERENCES], force=True)
    _, results = PairedTest(systems, {"BLEU": metric}, None, "bs", n_samples=1000)()
    assert comparison.p_value == pytest.approx(results["BLEU"][1].p_value)  # type: ignore[union-attr]


def test_large_difference_is_significant_and_small_one_is_not() -> None:
    bleu = tokenised_bleu("de")
    good, fair, bad = (bleu.count(system, REFERENCES) for system in (GOOD, FAIR, BAD))
    large = Bootstrap().compare(bleu, good, bad)
    assert large.p_value < 0.01
    assert large.wins == 1.0
    assert 0 < large.interval.low < large.difference < large.interval.high
    small = Bootstrap().compare(bleu, good, fair)
    assert small.p_value > 0.05
    assert small.interval.low < 0 < small.interval.high


def test_compare_is_symmetric() -> None:
    bleu = tokenised_bleu("de")
    good, fair = bleu.count(GOOD, REFERENCES), bleu.count(FAIR, REFERENCES)
    there, back = Bootstrap().compare(bleu, good, fair), Bootstrap().compare(bleu, fair, good)
    assert there.difference == -back.difference
    assert there.p_value == back.p_value
    assert there.wins == pytest.approx(1 - back.wins)
    assert there.interval.low == -back.interval.high


def test_system_does_not_differ_from_itself() -> None:
    bleu = sacre_bleu()
    counts = bleu.count(GOOD, REFERENCES)
    comparison = Bootstrap().compare(bleu, counts, counts)
    assert (comparison.difference, comparison.p_value, comparison.wins) == (0.0, 1.0, 0.5)


def test_interval_depends_on_the_seed() -> None:
    bleu = tokenised_bleu("de")
    counts = bleu.count(FAIR, REFERENCES)
    first, again, another = (
        Bootstrap(resamples=100, seed=seed).score(bleu, counts).interval for seed in (1, 1, 2)
    )
    assert first == again
    assert first != another


def test_interval_of_one_sentence_has_zero_width() -> None:
    bleu = tokenised_bleu("de")
    score = Bootstrap(resamples=10).score(bleu, bleu.count(["a b c d e"], ["a b c d f"]))
    assert score.interval is not None
    assert score.interval.low == score.interval.high == pytest.approx(score.value)


def test_samples_row_by_row_equal_samples_at_once() -> None:
    """Sampling row by row saves memory without changing the samples."""
    at_once = np.random.default_rng(12345).choice(37, size=(50, 37), replace=True)
    counts = np.eye(37, dtype=np.int64)[:, :10]
    expected = [[int((row == column).sum()) for column in range(10)] for row in at_once]
    assert Bootstrap(resamples=50)._sums(counts).tolist() == expected


def test_bootstrap_rejects_zero_resamples() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Bootstrap(resamples=0)
