"""Pairs, alignments and splits of the bilingual grammar."""

import pytest
from grammar.combinations import combinations, hold_out
from grammar.dice import Dice
from grammar.draw_sentences import Sentences
from grammar.lexicon import adverbial
from grammar.meaning import (
    FUTURE,
    PAST,
    PERFECT,
    PROGRESSIVE,
    Clause,
    Joined,
    Prepositional,
    Quality,
    Relative,
    Sentence,
)
from grammar.pairs import pair
from grammar.words import Number
from tests.grammar.meanings import (
    ANNA,
    CITIES,
    HERE,
    MY,
    WORDS,
    YESTERDAY,
    a,
    asks,
    at,
    np,
    says,
    some,
    the,
    verb,
)

from grammar import EXAMPLES, Grammar, grammar, parts, tokens
from grammar import function_words as f

SAD = next(adjective for adjective in WORDS.adjectives if adjective.name == "sad")

EXAMPLE_MEANINGS = [
    asks(Clause(verb("live"), f.YOU, place=f.WHERE, front=parts.PLACE)),
    asks(Clause(verb("help"), f.YOU, f.I, modal=f.CAN)),
    asks(Clause(verb("arrive"), the("train"), time=f.WHEN, front=parts.TIME)),
    says(Clause(verb("live"), np(MY, "sister"), place=Prepositional(f.IN, CITIES["Berlin"]))),
    says(
        Clause(
            verb("play"),
            the("child", plural=True),
            tense=PROGRESSIVE,
            place=at("in", the("garden")),
        )
    ),
    says(Clause(verb("order"), f.I, a("pizza"), modal=f.WOULD_LIKE)),
    Sentence(Clause(verb("close"), None, the("window")), "command", please=True),
    says(Clause(verb("read"), f.SHE, the("book"), tense=PERFECT, negated=True)),
    says(Clause(verb("have"), the("farmer"), some("cow", number=Number("25", "25")))),
    says(
        Clause(
            verb("visit"),
            f.US,
            the("castle", "old"),
            tense=PAST,
            time=YESTERDAY,
            front=parts.TIME,
        )
    ),
    says(
        Clause(
            verb("forget", "trying"),
            f.HE,
            tense=PERFECT,
            infinitive=Clause(verb("turn off"), None, the("light")),
        )
    ),
    Sentence(
        Clause(verb("stay"), f.US, tense=FUTURE, place=HERE["at home"]),
        joined=Joined(f.IF, Clause(f.RAIN, f.IT), leads=True),
    ),
    Sentence(
        Clause(verb("know", "knowing"), f.I, negated=True),
        joined=Joined(f.WHETHER, Clause(verb("arrive"), the("train"), tense=PERFECT)),
    ),
    Sentence(
        Clause(verb("give"), the("teacher"), a("book"), the("girl"), tense=PAST),
        joined=Joined(f.BECAUSE, Clause(f.BE, f.SHE, tense=PAST, quality=Quality(SAD))),
    ),
    says(
        Clause(
            verb("belong to"),
            the(
                "dog",
                relative=Relative(
                    "subject", Clause(verb("sleep"), place=at("under", the("table"), "resting"))
                ),
            ),
            np(MY, "brother"),
        )
    ),
]


def test_the_examples_lie_within_the_grammar() -> None:
    assert tuple(pair(meaning)[:2] for meaning in EXAMPLE_MEANINGS) == EXAMPLES


def test_tokens_are_words_and_punctuation() -> None:
    text = "Anna's dog, at 8 o'clock, sees twenty-five cows!"
    assert tokens(text) == (
        ["Anna's", "dog", ",", "at", "8", "o'clock", ",", "sees", "twenty-five", "cows", "!"]
    )


@pytest.mark.parametrize(
    ("meaning", "aligned"),
    [
        (
            says(Clause(verb("call"), ANNA, the("dog", owner=the("king")), negated=True)),
            "Anna~Anna does~ruft does~an not~nicht call~ruft call~an the~des king's~Königs "
            "dog~Hund .~.",
        ),
        (
            says(Clause(verb("see"), f.I, a("wolf"), tense=PERFECT, negated=True)),
            "I~Ich have~habe not~keinen seen~gesehen a~keinen wolf~Wolf .~.",
        ),
        (
            says(Clause(verb("go"), f.US, place=at("to", the("school"), "going"))),
            "We~Wir go~gehen to~zur the~zur school~Schule .~.",
        ),
        (
            says(Clause(verb("work"), f.HE, time=adverbial("in/1998", "im Jahr/1998"), tense=PAST)),
            "He~Er worked~arbeitete in~im in~Jahr 1998~1998 .~.",
        ),
        (
            says(Clause(verb("read"), f.SHE, some("book"), modal=f.LIKE)),
            "She~Sie likes~gern to~gern read~liest books~Bücher .~.",
        ),
    ],
)
def test_words_that_say_the_same_are_aligned(meaning: Sentence, aligned: str) -> None:
    made = pair(meaning)
    source, target = tokens(made.source), tokens(made.target)
    assert " ".join(f"{source[i]}~{target[j]}" for i, j in made.alignment) == aligned


def test_alignments_are_written_as_pharaoh_wants_them() -> None:
    made = pair(says(Clause(verb("get up"), f.YOU, tense=FUTURE)))
    assert (made.source, made.target) == ("You will get up.", "Du wirst aufstehen.")
    assert made.pharaoh == "0-0 1-1 2-2 3-2 4-3"


def test_the_same_seed_gives_the_same_pairs_and_another_gives_others() -> None:
    assert Grammar().pairs(50, seed=3) == Grammar().pairs(100, seed=3)[:50]
    assert Grammar().pairs(50, seed=3) != Grammar().pairs(50, seed=4)


def test_held_out_combinations_keep_their_words_known() -> None:
    held = hold_out(WORDS, seed=0)
    assert len(held.dev) == len(held.test) > 80
    assert held.dev.isdisjoint(held.test)
    # Prepositions stand before too few nouns each for one to be missed.
    assert {type(word).__name__.lower() for word, _ in held.test} == {"verb", "adjective"}
    every = [
        (use.verb, noun) for uses in WORDS.uses.values() for use in uses for noun in use.objects
    ]
    for use in (use for uses in WORDS.uses.values() for use in uses if use.objects):
        mine = {pair for pair in every if pair[0] is use.verb}
        assert len(mine - held.dev - held.test) >= 0.75 * len(mine)


def test_train_has_no_held_out_combination_and_each_test_sentence_has_one() -> None:
    sizes = {"train": 3000, "dev": 60, "test": 60}
    splits = Grammar().splits(**sizes, seed=8)
    held = hold_out(WORDS, seed=8)
    for name, made in splits._asdict().items():
        assert len(made) == sizes[name]
        wanted = {one.source for one in made}
        sentences = Sentences(WORDS, Dice(f"8 {name}"))
        while wanted:
            meaning = sentences.draw()
            found = set(combinations(meaning))
            if pair(meaning).source not in wanted:
                continue
            wanted.remove(pair(meaning).source)
            assert bool(found & held.dev) == (name == "dev")
            assert bool(found & held.test) == (name == "test")


def test_the_examples_are_never_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Grammar().splits(train=50, dev=0, test=0, seed=1).train
    taken = (drawn[7][:2],)
    monkeypatch.setattr(grammar, "EXAMPLES", taken)
    again = Grammar().splits(train=50, dev=0, test=0, seed=1).train
    assert again[:-1] == drawn[:7] + drawn[8:]


def test_splits_raise_when_train_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "_PATIENCE", 500)
    with pytest.raises(ValueError, match=r"dev: the grammar found only 0 pairs.* a larger train"):
        Grammar().splits(train=1, seed=0)
    with pytest.raises(ValueError, match="train: -1 pairs are requested"):
        Grammar().splits(train=-1, seed=0)


def test_few_draws_for_thousands_of_pairs_are_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Sentence] = []

    class Counted(Sentences):
        def draw(self) -> Sentence:
            drawn.append(super().draw())
            return drawn[-1]

    monkeypatch.setattr(grammar, "Sentences", Counted)
    assert len(Grammar().pairs(4000, seed=0)) == 4000
    assert len(drawn) < 5000
