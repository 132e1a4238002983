"""Properties of scores, for any text."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from transept.evaluation.bleu import Bleu, count_matches
from transept.evaluation.conventions import (
    chrf,
    sacre_bleu,
    split_compounds,
    tokenised_bleu,
)
from transept.text.moses import Language, tokenize

BLEUS = [
    sacre_bleu(),
    sacre_bleu("lower"),
    tokenised_bleu("en"),
    tokenised_bleu("de", "split"),
]
WORDS = ["we", "We", "see", "well-known", "it's", "U.S.", "3,5", "rain", "e.g.", "(so)", "Süd-Ost-"]
each_bleu = pytest.mark.parametrize("bleu", BLEUS, ids=lambda bleu: bleu.convention.name)

lines = st.lists(st.sampled_from([*WORDS, ".", ",", "-"]), max_size=12).map(" ".join)
pairs = st.lists(st.tuples(lines, lines), min_size=1, max_size=8)
awkward = st.text(alphabet=[*"aB3é²½Ⅷ.,'`’-_ \t\u00a0\x01\u200b…\"&|"], max_size=30)

# Few examples, to stay fast on a busy machine. The cases are small.
few_examples = settings(max_examples=25)


def unzipped(rows: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [ours for ours, _ in rows], [theirs for _, theirs in rows]


@each_bleu
@few_examples
@given(rows=pairs)
def test_scores_are_between_0_and_100(bleu: Bleu, rows: list[tuple[str, str]]) -> None:
    assert 0 <= bleu.measure(*unzipped(rows)).value <= 100


@each_bleu
@few_examples
@given(texts=st.lists(lines, min_size=1, max_size=8))
def test_bleu_of_reference_is_100(bleu: Bleu, texts: list[str]) -> None:
    texts = [*texts, "we see the rain as it falls"]
    assert bleu.measure(texts, texts).value == pytest.approx(100)


@few_examples
@given(rows=pairs, data=st.data())
def test_chrf_of_reference_is_100_and_ignores_order(
    rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    ours, theirs = unzipped([*rows, ("rain", "rain")])
    shuffled = data.draw(st.permutations([*rows, ("rain", "rain")]))
    assert chrf(theirs, theirs).value == pytest.approx(100)
    assert 0 <= chrf(ours, theirs).value <= 100
    assert chrf(*unzipped(shuffled)).value == pytest.approx(chrf(ours, theirs).value)


@each_bleu
@few_examples
@given(rows=pairs, data=st.data())
def test_bleu_does_not_depend_on_sentence_order(
    bleu: Bleu, rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert bleu.measure(*unzipped(shuffled)) == bleu.measure(*unzipped(rows))


@each_bleu
@few_examples
@given(rows=pairs)
def test_doubled_corpus_has_same_bleu(bleu: Bleu, rows: list[tuple[str, str]]) -> None:
    # With smoothing, an order without matches counts as half a match for any corpus size.
    counts = bleu.count(*unzipped(rows))
    if counts[:, 2:6].sum(axis=0).all():
        twice = np.concatenate([counts, counts])
        assert bleu.score(twice).value == pytest.approx(bleu.score(counts).value)


@each_bleu
@few_examples
@given(rows=pairs)
def test_bleu_values_and_score_agree(bleu: Bleu, rows: list[tuple[str, str]]) -> None:
    counts = bleu.count(*unzipped(rows))
    (value,) = bleu.values(counts.sum(axis=0)[None])
    assert value == pytest.approx(bleu.score(counts).value, abs=1e-9)


@few_examples
@given(rows=pairs)
def test_bleu_matches_sacrebleu(rows: list[tuple[str, str]]) -> None:
    ours, theirs = unzipped(rows)
    for bleu, library in (
        (sacre_bleu(), BLEU(force=True)),
        (sacre_bleu("lower"), BLEU(force=True, lowercase=True)),
    ):
        expected = min(library.corpus_score(ours, [theirs]).score, 100)
        assert bleu.measure(ours, theirs).value == pytest.approx(expected, abs=1e-9)


@few_examples
@given(ours=st.lists(st.sampled_from("abc")), theirs=st.lists(st.sampled_from("abc")))
def test_matches_never_exceed_ngrams_of_either_side(ours: list[str], theirs: list[str]) -> None:
    there, back = count_matches(ours, theirs), count_matches(theirs, ours)
    assert there[2:6] == back[2:6]
    assert all(
        found <= min(mine, yours)
        for found, mine, yours in zip(there[2:6], there[6:], back[6:], strict=True)
    )


@settings(max_examples=200)
@given(text=st.one_of(awkward, st.text()), language=st.sampled_from(get_args(Language)))
def test_tokenization_changes_only_whitespace(text: str, language: Language) -> None:
    tokens = tokenize(text, language)
    controls = dict.fromkeys((*range(9), *range(14, 32)))
    assert "".join(tokens) == "".join(text.translate(controls).split())
    assert all(tokens)
    assert not any(" " in token for token in tokens)


@few_examples
@given(text=st.one_of(awkward, st.text()))
def test_split_compounds_can_be_rejoined(text: str) -> None:
    assert split_compounds(text).replace(" ##AT##-##AT## ", "-") == text
