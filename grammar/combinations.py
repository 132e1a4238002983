"""Word combinations in a sentence, which can be held out for dev and test."""

from collections.abc import Iterator
from typing import NamedTuple

from grammar import function_words as f
from grammar.dice import Dice
from grammar.lexicon import Lexicon
from grammar.meaning import Clause, Nominal, Phrase, Prepositional, Sentence
from grammar.words import Adjective, Name, Noun, Preposition, Verb

Combination = tuple[Verb | Adjective | Preposition, Noun | Name]
"""A verb and its object, an adjective and its noun, or a preposition and its noun."""


def combinations(sentence: Sentence) -> list[Combination]:
    """Return all combinations in the sentence."""
    found: list[Combination] = []
    _in_clause(sentence.clause, found)
    if sentence.joined is not None:
        _in_clause(sentence.joined.clause, found)
    return found


def _in_clause(clause: Clause, found: list[Combination]) -> None:
    subject, thing, place = clause.subject, clause.object, clause.place
    if isinstance(thing, Phrase):
        found.append((clause.verb, thing.noun))
        _in_phrase(thing, found)
    if isinstance(subject, Phrase):
        _in_phrase(subject, found)
        if clause.quality is not None:
            found.append((clause.quality.adjective, subject.noun))
    if isinstance(clause.recipient, Phrase):
        _in_phrase(clause.recipient, found)
    if isinstance(place, Prepositional):
        _behind(place.preposition, place.nominal, found)
    if clause.infinitive is not None:
        _in_clause(clause.infinitive, found)


def _in_phrase(phrase: Phrase, found: list[Combination]) -> None:
    if phrase.adjective is not None:
        found.append((phrase.adjective, phrase.noun))
    relative = phrase.relative
    if relative is None:
        return
    _in_clause(relative.clause, found)
    if relative.role == "object":
        found.append((relative.clause.verb, phrase.noun))
    elif relative.preposition is not None:
        found.append((relative.preposition, phrase.noun))


def _behind(preposition: Preposition, nominal: Nominal, found: list[Combination]) -> None:
    if isinstance(nominal, Phrase):
        found.append((preposition, nominal.noun))
        _in_phrase(nominal, found)
    elif isinstance(nominal, Name):
        found.append((preposition, nominal))


# --- held out ----------------------------------------------------------------------------------


class HeldOut(NamedTuple):
    """The combinations that never occur in train, for dev and for test."""

    dev: frozenset[Combination]
    test: frozenset[Combination]


def hold_out(words: Lexicon, seed: int, share: float = 0.05) -> HeldOut:
    """Choose about this share of all combinations for dev, and as many for test.

    Each word keeps at least three quarters of its combinations, and at least six. So every word
    is known from train, but not in the combinations that are held out.
    """
    dice = Dice(f"{seed} held out")
    dev: set[Combination] = set()
    test: set[Combination] = set()
    for kind in (_of_verbs(words), _of_adjectives(words), _of_prepositions(words)):
        every = sorted(kind, key=lambda _: dice.roll())
        spare = _spare(every)
        wanted = 2 * round(share * len(every))
        chosen: list[Combination] = []
        for one, other in every:
            if len(chosen) < wanted and spare[one] and spare[other]:
                spare[one] -= 1
                spare[other] -= 1
                chosen.append((one, other))
        dev.update(chosen[::2])
        test.update(chosen[1::2])
    return HeldOut(frozenset(dev), frozenset(test))


def _spare(every: list[Combination]) -> dict[object, int]:
    """Return how many combinations of each word may be held out."""
    counts: dict[object, int] = {}
    for combination in every:
        for word in combination:
            counts[word] = counts.get(word, 0) + 1
    return {word: count // 4 if count >= 8 else 0 for word, count in counts.items()}


def _of_verbs(words: Lexicon) -> Iterator[Combination]:
    for uses in words.uses.values():
        for use in uses:
            for noun in use.objects:
                yield use.verb, noun


def _of_adjectives(words: Lexicon) -> Iterator[Combination]:
    for adjective, nouns in words.adjectives.items():
        for noun in nouns:
            yield adjective, noun


def _of_prepositions(words: Lexicon) -> Iterator[Combination]:
    for places in words.places.values():
        for place in places:
            for noun in place.nouns:
                yield place.preposition, noun
    for preposition in (f.IN, f.TO):
        for name in (*words.cities, *words.countries):
            yield preposition, name
