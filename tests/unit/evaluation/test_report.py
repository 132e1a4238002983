"""Scores with all conventions."""

import pytest
from tests.unit.evaluation.systems import damaged, references

from transept.errors import DataError
from transept.evaluation.bleu import Bootstrap
from transept.evaluation.conventions import sacre_bleu, tokenised_bleu
from transept.evaluation.report import System, evaluate

REFERENCES = references(120)
OURS, THEIRS = damaged(REFERENCES, 0.1), damaged(REFERENCES, 0.3)
QUICK = Bootstrap(resamples=50)


def test_evaluate_scores_one_system_with_all_conventions() -> None:
    report = evaluate(System("ours", OURS), REFERENCES, language="de", bootstrap=QUICK)
    (system,) = report.systems
    assert report.sentences == 120
    assert report.comparisons == ()
    assert (system.name, system.warnings, report.warnings) == ("ours", (), ())
    assert [score.convention.name for score in system.scores] == [
        "sacreBLEU",
        "sacreBLEU, lower-cased",
        "tokenised BLEU",
        "tokenised BLEU, compounds split",
        "chrF2",
    ]
    values = {score.convention: score.value for score in system.scores}
    for bleu in (sacre_bleu(), tokenised_bleu("de", "split")):
        assert values[bleu.convention] == bleu.measure(OURS, REFERENCES).value


def test_evaluate_compares_two_systems_with_all_bleu_conventions() -> None:
    report = evaluate(
        System("ours", OURS), REFERENCES, other=System("theirs", THEIRS), bootstrap=QUICK
    )
    first, second = report.systems
    assert len(report.comparisons) == 4
    for comparison, ours, theirs in zip(
        report.comparisons, first.scores, second.scores, strict=False
    ):
        assert comparison.convention == ours.convention == theirs.convention
        assert comparison.difference == ours.value - theirs.value > 0


def test_evaluate_rejects_unequal_numbers_of_lines() -> None:
    with pytest.raises(DataError, match=r"theirs has 119 lines, but there are 120 references"):
        evaluate(System("ours", OURS), REFERENCES, other=System("theirs", THEIRS[1:]))


@pytest.mark.parametrize("nothing", [[], [""], ["", " \t"]])
def test_evaluate_rejects_empty_references(nothing: list[str]) -> None:
    with pytest.raises(DataError, match="all references are empty"):
        evaluate(System("ours", nothing), nothing)


def test_empty_output_scores_zero() -> None:
    report = evaluate(System("ours", [""] * 120), REFERENCES, bootstrap=QUICK)
    assert {score.value for score in report.systems[0].scores} == {0.0}
