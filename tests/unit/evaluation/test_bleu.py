"""BLEU, compared with manual computation and with sacreBLEU."""

import math

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from tests.unit.evaluation.systems import damaged, references

from transept.evaluation.bleu import Bleu, Smoothing, count_matches
from transept.evaluation.scores import Convention

CONVENTION = Convention(name="tokens", signature="tok:none")
PLAIN = Bleu(convention=CONVENTION, tokenize=str.split)
SMOOTHED = Bleu(convention=CONVENTION, tokenize=str.split, smoothing="exp")


def test_count_matches_of_a_sentence() -> None:
    ours = ["we", "saw", "the", "old", "bridge", "by", "the", "river"]
    theirs = ["we", "saw", "an", "old", "bridge", "by", "the", "river"]
    # Found: all but one `the`; we-saw old-bridge bridge-by by-the the-river; then 3 and 2 of them.
    assert count_matches(ours, theirs) == [8, 8, 7, 5, 3, 2, 8, 7, 6, 5]


def test_ngram_counts_are_clipped_to_the_reference() -> None:
    assert count_matches(["ha"] * 4, ["ha", "said", "he", "ha"]) == [4, 4, 2, 0, 0, 0, 4, 3, 2, 1]


def test_short_sentence_has_no_long_ngrams() -> None:
    assert count_matches(["yes", "sir"], ["yes"]) == [2, 1, 1, 0, 0, 0, 2, 1, 0, 0]
    assert count_matches([], ["yes"]) == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_bleu_is_geometric_mean_of_precisions() -> None:
    score = PLAIN.measure(
        ["we saw the old bridge by the river"], ["we saw an old bridge by the river"]
    )
    assert score.value == pytest.approx(100 * (7 / 8 * 5 / 7 * 3 / 6 * 2 / 5) ** 0.25)
    assert score.breakdown is not None
    assert score.breakdown.precisions == pytest.approx([87.5, 500 / 7, 50.0, 40.0])
    assert score.breakdown.brevity_penalty == 1.0
    assert score.breakdown.length_ratio == 1.0


def test_brevity_penalty_applies_only_to_short_output() -> None:
    short = PLAIN.measure(["a b c d e"], ["a b c d e f g h"])
    assert short.value == pytest.approx(100 * math.exp(1 - 8 / 5))
    assert short.breakdown is not None
    assert short.breakdown.length_ratio == 5 / 8
    long = PLAIN.measure(["a b c d e f g h"], ["a b c d e"])
    assert long.value == pytest.approx(100 * (5 / 8 * 4 / 7 * 3 / 6 * 2 / 5) ** 0.25)


def test_bleu_sums_counts_over_the_corpus() -> None:
    score = PLAIN.measure(["a b c d", "x"], ["a b c d", "y"])
    assert score.value == pytest.approx(100 * (4 / 5) ** 0.25)


def test_without_a_4gram_bleu_is_zero_unless_smoothed() -> None:
    pair = ["a b c x d"], ["a b c y d"]
    assert PLAIN.measure(*pair).value == 0.0
    # None of two 4-grams is found: counts as ½.
    assert SMOOTHED.measure(*pair).value == pytest.approx(
        100 * (4 / 5 * 2 / 4 * 1 / 3 * 0.5 / 2) ** 0.25
    )
    # None of three 3-grams and none of two 4-grams: ½ and ¼.
    assert SMOOTHED.measure(["a b x c d"], ["a b y c d"]).value == pytest.approx(
        100 * (4 / 5 * 2 / 4 * 0.5 / 3 * 0.25 / 2) ** 0.25
    )


@pytest.mark.parametrize("bleu", [PLAIN, SMOOTHED], ids=["none", "exp"])
def test_bleu_without_matches_is_zero(bleu: Bleu) -> None:
    for hypothesis in ("", "q r s t u"):
        assert bleu.measure([hypothesis], ["a b c d e"]).value == 0.0
        assert bleu.values(bleu.count([hypothesis], ["a b c d e"]))[0] == 0.0
    assert bleu.measure([""], [""]).value == 0.0


def test_unequal_numbers_of_lines_raise_error() -> None:
    with pytest.raises(ValueError, match="argument 2 is longer"):
        PLAIN.measure(["a"], ["a", "b"])


@pytest.mark.parametrize("smoothing", ["none", "exp"])
def test_sacrebleu_agrees_on_given_tokens(smoothing: Smoothing) -> None:
    theirs = references(200)
    ours = damaged(theirs, 0.3)
    library = BLEU(tokenize="none", smooth_method=smoothing, force=True)
    expected = library.corpus_score(ours, [theirs])
    score = Bleu(convention=CONVENTION, tokenize=str.split, smoothing=smoothing).measure(
        ours, theirs
    )
    assert score.value == pytest.approx(expected.score, abs=1e-9)
    assert score.breakdown is not None
    assert score.breakdown.precisions == pytest.approx(expected.precisions)
    assert score.breakdown.hypothesis_length == expected.sys_len
    assert score.breakdown.reference_length == expected.ref_len


@pytest.mark.parametrize("bleu", [PLAIN, SMOOTHED], ids=["none", "exp"])
def test_values_agree_with_score(bleu: Bleu) -> None:
    theirs = references(60)
    counts = bleu.count(damaged(theirs, 0.6), theirs)
    sums = np.stack([counts[start:end].sum(axis=0) for start in range(8) for end in range(9, 60)])
    single = [bleu.score(row[None]).value for row in sums]
    assert bleu.values(sums) == pytest.approx(single, abs=1e-9)
    sentences = [bleu.score(row[None]).value for row in counts]
    assert bleu.values(counts) == pytest.approx(sentences, abs=1e-9)
