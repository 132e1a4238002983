"""Everything at once."""

import pytest
from tests.unit.evaluation.systems import damaged, references

from transept.errors import DataError
from transept.evaluation.bleu import Bootstrap
from transept.evaluation.conventions import sacre_bleu, tokenised_bleu
from transept.evaluation.report import System, evaluate

REFERENCES = references(120)
OURS, THEIRS = damaged(REFERENCES, 0.1), damaged(REFERENCES, 0.3)
QUICK = Bootstrap(resamples=50)


def test_one_system_is_scored_by_every_convention() -> None:
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


def test_two_systems_are_compared_by_every_bleu() -> None:
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


def test_unequal_numbers_of_lines_are_refused() -> None:
    with pytest.raises(DataError, match=r"theirs has 119 lines, but there are 120 references"):
        evaluate(System("ours", OURS), REFERENCES, other=System("theirs", THEIRS[1:]))


@pytest.mark.parametrize("nothing", [[], [""], ["", " \t"]])
def test_a_test_set_of_nothing_is_refused(nothing: list[str]) -> None:
    with pytest.raises(DataError, match="all references are empty"):
        evaluate(System("ours", nothing), nothing)


def test_output_of_nothing_scores_zero() -> None:
    report = evaluate(System("ours", [""] * 120), REFERENCES, bootstrap=QUICK)
    assert {score.value for score in report.systems[0].scores} == {0.0}
