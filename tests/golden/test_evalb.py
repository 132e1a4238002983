"""Output of evalb (the C program of 2006, COLLINS.prm) for these trees, written for this test.

A row has evalb's columns Stat., Matched, gold, test, Cross, Words and Correct Tags. Rows of skipped
sentences are zero.
"""

import pytest

from transept.evaluation.evalb import COLLINS, Parameters, score_sentence
from transept.evaluation.parse_report import Summary, evaluate_parses

CAT = "(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))"
FORTY = "(S " + "(NP (NN a)) (VP (VB b)) " * 20 + "(. .))"
ERROR, SKIPPED = (1, 0, 0, 0, 0, 0, 0), (2, 0, 0, 0, 0, 0, 0)
WHOLE = (0, 5, 5, 5, 0, 6, 6)
Row = tuple[int, int, int, int, int, int, int]

PAIRS: dict[str, tuple[str, str, Row]] = {
    "the same tree": (CAT, CAT, WHOLE),
    "a wrong label": (CAT, CAT.replace("PP", "ADJP"), (0, 4, 5, 5, 0, 6, 6)),
    "attached elsewhere": (
        CAT,
        "(S (NP (DT The) (NN cat)) (VP (VBD sat)) (PP (IN on) (NP (DT the) (NN mat))) (. .))",
        (0, 4, 5, 5, 0, 6, 6),
    ),
    "a bracket that crosses two": (
        CAT,
        "(S (NP (DT The)) (X (NN cat) (VBD sat)) (PP (IN on) (NP (DT the) (NN mat))) (. .))",
        (0, 3, 5, 5, 1, 6, 6),
    ),
    "a wrong tag": (CAT, CAT.replace("(NN cat)", "(VB cat)"), (0, 5, 5, 5, 0, 6, 5)),
    "functions and indices": (
        CAT.replace("(NP (DT The)", "(NP-SBJ-1 (DT The)").replace("(PP", "(PP-LOC=2"),
        CAT,
        WHOLE,
    ),
    "a function on a tag counts": (
        CAT.replace("(NN cat)", "(NN-HL cat)"),
        CAT,
        (0, 5, 5, 5, 0, 6, 5),
    ),
    "traces and what holds only them": (
        CAT.replace("(VBD sat)", "(VBD sat) (NP (-NONE- *T*-1))"),
        CAT,
        WHOLE,
    ),
    "punctuation hangs anywhere": (
        CAT,
        "(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat) (. .)))))",
        WHOLE,
    ),
    "punctuation with another such tag": (CAT, CAT.replace("(. .)", "(: .)"), WHOLE),
    "punctuation tagged as a word": (CAT, CAT.replace("(. .)", "(NN .)"), ERROR),
    "a word tagged as punctuation": (CAT, CAT.replace("(NN mat)", "(, mat)"), ERROR),
    "another word": (CAT, CAT.replace("cat", "dog"), ERROR),
    "a word too few": (CAT, CAT.replace(" (DT the)", ""), ERROR),
    "ADVP and PRT": (
        "(VP (VB go) (ADVP (RB out)))",
        "(VP (VB go) (PRT (RP out)))",
        (0, 2, 2, 2, 0, 2, 1),
    ),
    "NP over NP, found once": ("(NP (NP (NN cat)))", "(NP (NN cat))", (0, 1, 2, 1, 0, 1, 1)),
    "NP found twice, there once": ("(NP (NN cat))", "(NP (NP (NN cat)))", (0, 1, 1, 2, 0, 1, 1)),
    "a chain in another order": ("(S (VP (VB go)))", "(VP (S (VB go)))", (0, 2, 2, 2, 0, 1, 1)),
    "TOP is not counted": ("(TOP (S (VB go)))", "(S (VB go))", (0, 1, 1, 1, 0, 1, 1)),
    "ROOT is": ("(ROOT (S (VB go)))", "(S (VB go))", (0, 1, 2, 1, 0, 1, 1)),
    "so is a bracket without a label": ("( (S (VB go)))", "(S (VB go))", (0, 1, 2, 1, 0, 1, 1)),
    "nothing predicted": (CAT, "", SKIPPED),
    "only punctuation predicted": (CAT, "(S (. .))", SKIPPED),
    "nothing there and nothing predicted": ("", "", SKIPPED),
    "nothing there": ("", CAT, ERROR),
    "only punctuation there": ("(S (. .))", "(S (NN .))", ERROR),
    "an empty bracket is passed over": (CAT, CAT.replace("(VBD sat)", "(VBD sat) (NP)"), WHOLE),
    "one with a space in it is a word": (CAT, CAT.replace("(VBD sat)", "(VBD sat) (NP )"), ERROR),
    "a bracket too few": (CAT, CAT[:-1], ERROR),
    "a bracket too many": (CAT, CAT + ")", ERROR),
    "a bracket too few in the gold tree": (CAT[:-1], CAT, ERROR),
    "no root": (
        "(S (NP (NN cat)) (VP (VBD sat)))",
        "(NP (NN cat)) (VP (VBD sat))",
        (0, 2, 3, 2, 0, 2, 2),
    ),
    "spaces": (CAT.replace(" (", "("), CAT.replace(" (", "\t ("), WHOLE),
    "forty words and a full stop": (FORTY, FORTY, (0, 41, 41, 41, 0, 40, 40)),
    "forty words and a trace": (
        FORTY.replace("(. .)", "(-NONE- *)"),
        FORTY.replace("(. .)", ""),
        (0, 41, 41, 41, 0, 40, 40),
    ),
}


def row(gold: str, predicted: str, parameters: Parameters) -> Row:
    score = score_sentence(gold, predicted, parameters)
    if score.status != "valid":
        return ERROR if score.status == "error" else SKIPPED
    counts = (score.matched, score.gold, score.predicted, score.crossing)
    return (0, *counts, score.words, score.right_tags)


@pytest.mark.parametrize("name", PAIRS)
def test_sentence_counts_match_evalb(name: str) -> None:
    gold, predicted, expected = PAIRS[name]
    assert row(gold, predicted, COLLINS) == expected


def test_lengths_match_evalb() -> None:
    lengths = [
        score_sentence(gold, predicted, COLLINS).length for gold, predicted, _ in PAIRS.values()
    ]
    assert lengths == [7] * 14 + [2] + [1] * 6 + [7, 7, 0, 0, 1] + [7] * 5 + [2, 7, 41, 40]


def test_summary_matches_evalb() -> None:
    gold, predicted, _ = zip(*PAIRS.values(), strict=True)
    report = evaluate_parses(gold, predicted)
    assert rounded(report.all.evalb) == [
        *(35, 10, 3, 22),
        *(94.90, 96.75, 95.82, 63.64, 0.05, 95.45, 100.0, 98.15),
    ]
    assert rounded(report.short.evalb) == [
        *(34, 10, 3, 21),
        *(93.10, 95.58, 94.32, 61.90, 0.05, 95.24, 100.0, 97.54),
    ]


def rounded(summary: Summary) -> list[float]:
    return [
        *(summary.sentences, summary.errors, summary.skipped, summary.valid),
        *(round(rate, 2) for rate in (summary.recall, summary.precision, summary.f1)),
        *(round(summary.complete_match, 2), round(summary.average_crossing, 2)),
        *(round(summary.no_crossing, 2), round(summary.two_or_less_crossing, 2)),
        round(summary.tagging_accuracy, 2),
    ]
