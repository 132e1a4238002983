"""Warnings about common mistakes."""

import pytest
from tests.unit.evaluation.systems import damaged, references

from transept.evaluation.reading import suspect, suspect_test_set
from transept.text.moses import tokenize

PLAIN = references(120)
TOKENISED = [" ".join(tokenize(line, "de")) for line in PLAIN]
LOWER = [line.lower() for line in PLAIN]


def test_plain_text_causes_no_warning() -> None:
    assert suspect(damaged(PLAIN, 0.2), PLAIN) == ()
    assert suspect_test_set(PLAIN) == ()


@pytest.mark.parametrize(
    ("hypotheses", "theirs", "complaint"),
    [
        (TOKENISED, PLAIN, "the hypotheses look tokenised and the references do not"),
        (PLAIN, TOKENISED, "the references look tokenised and the hypotheses do not"),
        (TOKENISED, TOKENISED, "both sides look tokenised"),
        (LOWER, PLAIN, "the hypotheses look lower-cased and the references do not"),
        (PLAIN, LOWER, "the references look lower-cased and the hypotheses do not"),
        ([line.replace("e", "e@@ ") for line in PLAIN], PLAIN, "split into subwords"),
        ([f"▁{line.replace(' ', ' ▁')}" for line in PLAIN], PLAIN, "split into subwords"),
        (["", " ", *PLAIN[2:]], PLAIN, "2 of 120 hypotheses are empty"),
    ],
)
def test_suspect_warns_of_common_mistakes(
    hypotheses: list[str], theirs: list[str], complaint: str
) -> None:
    (warning,) = suspect(hypotheses, theirs)
    assert complaint in warning


@pytest.mark.parametrize("theirs", [PLAIN, TOKENISED, LOWER])
@pytest.mark.parametrize("line", ["", " "])
def test_suspect_of_only_empty_hypotheses_warns_of_nothing_else(
    line: str, theirs: list[str]
) -> None:
    (warning,) = suspect([line] * 120, theirs)
    assert warning == "all 120 hypotheses are empty; check the file of translations"


def test_suspect_of_hypotheses_without_letters_does_not_warn_of_case() -> None:
    assert suspect(["1 2 3"] * 120, PLAIN) == ()


def test_lower_case_on_both_sides_causes_no_warning() -> None:
    assert suspect(LOWER, LOWER) == ()


def test_suspect_reports_several_mistakes_together() -> None:
    tokenised, lower = suspect([line.lower() for line in TOKENISED], PLAIN)
    assert "tokenised" in tokenised
    assert "lower-cased" in lower


def test_french_spacing_is_not_taken_for_tokenisation() -> None:
    french = ["Vraiment ? Oui : c'est vrai !", "« Bien sûr » , dit-elle.", "Voilà."] * 50
    assert suspect([line.replace("« Bien sûr » ,", "Oui,") for line in french], french) == ()


def test_text_without_letters_or_stops_causes_no_warning() -> None:
    assert suspect(["1 2 3"] * 100, ["4 5 6"] * 100) == ()


def test_suspect_test_set_warns_of_few_and_empty_references() -> None:
    few, empty = suspect_test_set([*PLAIN[:10], ""])[::-1]
    assert few == "11 sentences are few: intervals and p-values mean little below 100"
    assert empty == "1 of 11 references are empty"
