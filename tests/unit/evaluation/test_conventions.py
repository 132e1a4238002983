"""Tokens and signatures of the conventions."""

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from tests.unit.evaluation.systems import damaged, references

from transept.evaluation.conventions import (
    Case,
    chrf,
    sacre_bleu,
    split_compounds,
    tokenised_bleu,
)
from transept.evaluation.scores import Convention, Score


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("die Nord-Süd-Achse", "die Nord ##AT##-##AT## Süd ##AT##-##AT## Achse"),
        ("a - b -c d- --", "a - b -c d- --"),
        # Matches consume the characters next to a hyphen, so a single byte between two hyphens
        # allows only one split.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("a-ä-c", "a ##AT##-##AT## ä ##AT##-##AT## c"),
        ("---", "- ##AT##-##AT## -"),
        ("2014-2017", "2014 ##AT##-##AT## 2017"),
        ("", ""),
    ],
)
def test_split_compounds_agrees_with_tensor2tensor(line: str, expected: str) -> None:
    assert split_compounds(line) == expected


def test_compounds_split_counts_parts_of_compounds() -> None:
    hypothesis, reference = ["Das Nord-Süd-Gefälle wächst."], ["Das Ost-West-Gefälle wächst."]
    whole = tokenised_bleu("de").count(hypothesis, reference)
    assert whole.tolist() == [[4, 4, 3, 1, 0, 0, 4, 3, 2, 1]]
    # Das Nord ##AT##-##AT## Süd ##AT##-##AT## Gefälle wächst .
    split = tokenised_bleu("de", "split").count(hypothesis, reference)
    assert split.tolist() == [[8, 8, 6, 3, 2, 1, 8, 7, 6, 5]]
    assert tokenised_bleu("de", "split").count([""], ["x"]).tolist() == [[0, 1] + [0] * 8]


def test_tokens_depend_on_language() -> None:
    assert tokenised_bleu("en").tokenize("it's") == ["it", "'s"]
    assert tokenised_bleu("de").tokenize("it's") == ["it", "'", "s"]


@pytest.mark.parametrize("case", ["mixed", "lower"])
def test_sacre_bleu_agrees_with_library(case: Case) -> None:
    theirs = references(150)
    ours = [line.upper() if n % 7 == 0 else line for n, line in enumerate(damaged(theirs, 0.2))]
    library = BLEU(lowercase=case == "lower")
    expected = library.corpus_score(ours, [theirs])
    score = sacre_bleu(case).measure(ours, theirs)
    assert score.value == pytest.approx(expected.score, abs=1e-9)
    assert score.convention.signature == str(library.get_signature())
    assert f"case:{'lc' if case == 'lower' else 'mixed'}|eff:no|tok:13a" in str(score)


def test_chrf_agrees_with_library() -> None:
    theirs = references(20)
    ours = damaged(theirs, 0.2)
    library = CHRF()
    score = chrf(ours, theirs)
    assert score.value == library.corpus_score(ours, [theirs]).score
    assert score.convention == Convention(name="chrF2", signature=str(library.get_signature()))


def test_conventions_have_distinct_signatures() -> None:
    bleus = [
        sacre_bleu(),
        sacre_bleu("lower"),
        tokenised_bleu("de"),
        tokenised_bleu("fr"),
        tokenised_bleu("de", "split"),
    ]
    assert len({bleu.convention.signature for bleu in bleus}) == len(bleus)
    assert all("version:" in bleu.convention.signature for bleu in bleus)


def test_score_requires_convention() -> None:
    with pytest.raises(TypeError, match="convention"):
        Score(value=27.3)  # type: ignore[call-arg]
    for name, signature in (("", "tok:13a"), ("BLEU", "")):
        with pytest.raises(ValueError, match="a name and a signature"):
            Convention(name=name, signature=signature)


def test_score_is_printed_with_its_convention() -> None:
    score = Score(convention=Convention(name="BLEU", signature="tok:none"), value=27.309)
    assert str(score) == "BLEU 27.31 (tok:none)"
