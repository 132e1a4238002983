"""Properties of all pairs: well formed, aligned, one translation per English sentence."""

import re

import pytest
from grammar.grammar import LONGEST
from hypothesis import given, settings
from hypothesis import strategies as st

from grammar import Grammar, SentencePair, tokens

ARTICLES = {"der", "die", "das", "den", "dem", "des"}
WELL_FORMED = re.compile(r"[A-ZÄÖÜ0-9][^.?!]*[\wäöüß][.?!]")


@pytest.fixture(scope="module")
def pairs() -> list[SentencePair]:
    return Grammar().pairs(20_000, seed=11)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**64), n=st.integers(0, 40))
def test_any_seed_gives_as_many_as_are_asked_for(seed: int, n: int) -> None:
    made = Grammar().pairs(n, seed=seed)
    assert len({one.source for one in made}) == n
    for one in made:
        check_form(one)
        check_alignment(one)


def check_form(made: SentencePair) -> None:
    for text in made[:2]:
        assert WELL_FORMED.fullmatch(text), text
        assert text == " ".join(text.split()), text
        assert not re.search(r"\s[,.?!]|,\S|,,|-$", text), text
        assert len(text.split()) <= LONGEST, text
    assert made.source[-1] == made.target[-1]


def check_alignment(made: SentencePair) -> None:
    """Every word corresponds to one; German commas and articles need not."""
    source, target = tokens(made.source), tokens(made.target)
    assert list(made.alignment) == sorted(set(made.alignment))
    assert {i for i, _ in made.alignment} == set(range(len(source)))
    alone = set(range(len(target))) - {j for _, j in made.alignment}
    assert {target[j].lower() for j in alone} <= {",", *ARTICLES}, made
    assert (len(source) - 1, len(target) - 1) in made.alignment


def test_many_are_well_formed_and_aligned(pairs: list[SentencePair]) -> None:
    for made in pairs:
        check_form(made)
        check_alignment(made)


def test_lengths_are_moderate(pairs: list[SentencePair]) -> None:
    words = [len(made.source.split()) for made in pairs]
    assert 6 < sum(words) / len(words) < 8


def test_an_english_sentence_has_one_translation(pairs: list[SentencePair]) -> None:
    known = {made.source: made.target for made in pairs}
    for seed in (1, 2):
        for made in Grammar().pairs(10_000, seed=seed):
            assert known.setdefault(made.source, made.target) == made.target
