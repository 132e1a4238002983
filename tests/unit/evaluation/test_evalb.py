"""Labelled bracketing: parameters, and sentences that evalb does not count."""

from pathlib import Path

import pytest

from transept.errors import DataError
from transept.evaluation.evalb import COLLINS, Parameters, read_parameters, score_sentence
from transept.evaluation.parse_report import evaluate_parses, suspect_roots

CAT = "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))"


def test_errors_count_as_missed_and_wrong_in_whole_summary() -> None:
    report = evaluate_parses([CAT, CAT, CAT], [CAT, CAT.replace("cat", "dog"), ""])
    evalb, whole = report.all.evalb, report.all.whole
    assert (evalb.valid, evalb.errors, evalb.skipped) == (1, 1, 1)
    assert (evalb.recall, evalb.precision, evalb.f1, evalb.complete_match) == (100, 100, 100, 100)
    assert whole.recall == pytest.approx(100 * 3 / 9)
    assert whole.precision == pytest.approx(100 * 3 / 6)
    assert whole.f1 == pytest.approx(40.0)
    assert whole.complete_match == pytest.approx(100 / 3)
    assert whole.tagging_accuracy == pytest.approx(100 / 3)
    assert report.problems == {"words differ": 1}
    assert report.first_problems == ((2, "words differ"),)


def test_summaries_agree_without_errors() -> None:
    report = evaluate_parses([CAT] * 2, [CAT, CAT.replace("VP", "NP")])
    assert report.all.whole.f1 == report.all.evalb.f1 == pytest.approx(100 * 5 / 6)
    assert report.problems == {}
    assert report.stopped_at is None


def test_empty_trees_score_zero() -> None:
    for gold, predicted in ([], []), ([""], [""]), ([CAT], ["(X (NN dog))"]):
        report = evaluate_parses(gold, predicted)
        assert report.all.evalb.f1 == report.all.whole.f1 == 0.0


def test_short_sentences_are_scored_separately() -> None:
    long = CAT.replace("(NN cat)", "(NN cat) " * 41)
    report = evaluate_parses([CAT, long], [CAT, ""])
    assert (report.all.evalb.sentences, report.short.evalb.sentences) == (2, 1)
    assert report.all.whole.f1 == pytest.approx(200 / 3)
    assert report.short.whole.f1 == 100.0


def test_evalb_stops_at_the_second_error_beyond_its_limit() -> None:
    wrong = CAT.replace("cat", "dog")
    report = evaluate_parses([CAT] * 13, [CAT, *[wrong] * 12])
    assert report.stopped_at == 13
    assert evaluate_parses([CAT] * 12, [CAT, *[wrong] * 11]).stopped_at is None


@pytest.mark.parametrize("stray", ["hello", "(S (NP the cat))", "(S (NN dog ))", "(NN cat) sat"])
def test_evalb_stops_at_stray_text(stray: str) -> None:
    report = evaluate_parses([CAT, CAT], [CAT, stray])
    assert report.stopped_at == 2
    assert report.sentences[1].status == "error"
    assert "stray text" in report.sentences[1].problems


def test_unequal_numbers_of_lines_raise_error() -> None:
    with pytest.raises(DataError, match="2 gold lines and 1 predicted"):
        evaluate_parses([CAT, CAT], [CAT])


def test_no_break_space_is_part_of_a_word() -> None:
    tree = "(NP (CD 10\u00a0000) (NNS cats))"
    assert score_sentence(tree, tree, COLLINS).words == 2


def test_equal_labels_need_not_be_transitive() -> None:
    pairs = Parameters(equal_labels=frozenset({("A", "B"), ("B", "C")}))
    assert score_sentence("(A (X x))", "(B (X x))", pairs).matched == 1
    assert score_sentence("(A (X x))", "(C (X x))", pairs).matched == 0
    # Matching is greedy: another order would have matched both.
    assert score_sentence("(A (B (X x)))", "(B (A (X x)))", pairs).matched == 2
    assert score_sentence("(B (A (X x)))", "(B (C (X x)))", pairs).matched == 1


def test_label_equal_to_a_deleted_one_is_deleted() -> None:
    root = Parameters(deleted=frozenset({"TOP"}), equal_labels=frozenset({("ROOT", "TOP")}))
    assert score_sentence("(ROOT (S (X x)))", "(S (X x))", root).gold == 1


@pytest.mark.parametrize("root", ["", "ROOT", "S1"])
def test_suspect_roots_warns_if_only_one_side_has_roots(root: str) -> None:
    bare, rooted = [CAT] * 3, [f"({root} {CAT} )"] * 3
    assert "only the gold trees have a root" in suspect_roots(rooted, bare, COLLINS)
    assert "only the predicted trees have a root" in suspect_roots(bare, rooted, COLLINS)
    assert suspect_roots(rooted, rooted, COLLINS) == suspect_roots(bare, bare, COLLINS) == ""
    deletes = Parameters(deleted=frozenset({root}))
    assert suspect_roots(rooted, bare, deletes) == ""
    assert suspect_roots([], [""], COLLINS) == ""


def test_unlabelled_bracketing_compares_only_words() -> None:
    unlabelled = Parameters(bracketing="unlabelled")
    assert score_sentence("(A (B (X x)))", "(C (D (X x)))", unlabelled).matched == 2


# --- parameter files -------------------------------------------------------------------------


def test_read_parameters_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.prm"
    file.write_text(
        "# a comment\n\nDEBUG 0\nMAX_ERROR 5\nCUTOFF_LEN 70   \nLABELED 0\n"
        "DELETE_LABEL TOP\nDELETE_LABEL ,\nDELETE_LABEL_FOR_LENGTH -NONE-\n"
        "EQ_LABEL ADVP\tPRT\nEQ_LABEL A B\nEQ_WORD  Example example\n"
    )
    assert read_parameters(file) == Parameters(
        name="mine",
        bracketing="unlabelled",
        deleted=frozenset({"TOP", ","}),
        deleted_for_length=frozenset({"-NONE-"}),
        equal_labels=frozenset({("ADVP", "PRT"), ("A", "B")}),
        equal_words=frozenset({("Example", "example")}),
        cutoff=70,
        max_errors=5,
    )


def test_read_parameters_of_collins(tmp_path: Path) -> None:
    file = tmp_path / "COLLINS.prm"
    labels = ["TOP", "-NONE-", ",", ":", "``", "''", "."]
    file.write_text(
        "".join(f"DELETE_LABEL {label}\n" for label in labels)
        + "LABELED 1\nDELETE_LABEL_FOR_LENGTH -NONE-\nEQ_LABEL ADVP PRT\n"
    )
    assert read_parameters(file) == COLLINS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DELETE_LABLE TOP", "line 2: unknown keyword 'DELETE_LABLE'; did you mean 'DELETE_LABEL'"),
        ("DELETE_LABEL", "line 2: DELETE_LABEL needs one label, got ''"),
        ("DELETE_LABEL TOP S1", "line 2: DELETE_LABEL needs one label, got 'TOP S1'"),
        ("EQ_LABEL ADVP", "line 2: EQ_LABEL needs two labels, got 'ADVP'"),
        ("CUTOFF_LEN forty", "line 2: CUTOFF_LEN needs a number, got 'forty'"),
        ("LABELED yes", "line 2: LABELED needs 0 or 1, got 'yes'"),
    ],
)
def test_read_parameters_rejects_invalid_lines(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "bad.prm"
    file.write_text(f"LABELED 1\n{line}\n")
    with pytest.raises(DataError) as error:
        read_parameters(file)
    assert message in str(error.value)
    assert "bad.prm" in str(error.value)


def test_signature_distinguishes_parameters() -> None:
    assert COLLINS.signature != Parameters().signature
    assert "delete:'' , -NONE- . : TOP ``" in COLLINS.signature
