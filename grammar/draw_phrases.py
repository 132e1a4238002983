"""Samples random phrases: nouns with determiners, numbers and adjectives."""

from typing import Final

from grammar.dice import Dice
from grammar.function_words import (
    ALL,
    BARE,
    EVERY,
    HE,
    MANY,
    PERSONS,
    POSSESSIVES,
    SHE,
    SOME,
    THE,
    THEM,
    THIS,
    US,
    YOU,
    A,
    I,
)
from grammar.lexicon import Lexicon, Place
from grammar.meaning import Nominal, Pair, Phrase, Prepositional
from grammar.words import Adjective, Determiner, Name, Noun, Number, Pronoun

Article = Determiner | None
"""None if an owner takes its place."""

_KNOWN: Final[tuple[Article, ...]] = (
    *(THE,) * 14,
    *POSSESSIVES,
    *(THIS,) * 2,
    *(None,) * 2,
)
_ANY: Final[tuple[Article, ...]] = (*_KNOWN, *(A,) * 10, *(BARE,) * 7, MANY, SOME, EVERY, ALL)
_RELATIONS: Final[tuple[Article, ...]] = (*POSSESSIVES, *(THE,) * 5, *(None,) * 3)
_NEW: Final[tuple[Article, ...]] = (*(A,) * 10, *(BARE,) * 6, MANY, SOME)
_PLACES: Final[tuple[Article, ...]] = (*(THE,) * 12, *(A,) * 2, *POSSESSIVES[:4], THIS, None)
_MASS: Final[tuple[Article, ...]] = (*(BARE,) * 8, *(THE,) * 5, POSSESSIVES[2], POSSESSIVES[3])
_KNOWN_MASS: Final[tuple[Article, ...]] = (*(THE,) * 6, *POSSESSIVES, THIS)
_OWNERS: Final = (THE, THE, THE, *POSSESSIVES)

_CLASHES: Final = {I: (I, US), US: (I, US), YOU: (YOU,)}
"""`I see me` would be `I see myself`; `he sees him` refers to two people."""


class Phrases:
    """Samples phrases of any kind."""

    def __init__(self, words: Lexicon, dice: Dice) -> None:
        self._words, self._dice = words, dice
        self._persons = tuple(noun for noun in words.nouns.values() if noun.kind == "person")
        self._adjectives: dict[Noun, tuple[Adjective, ...]] = {
            noun: tuple(a for a, said_of in words.adjectives.items() if noun in said_of)
            for noun in words.nouns.values()
        }

    def subject(self, nouns: tuple[Noun, ...], *, known: bool, light: bool) -> Nominal:
        """Sample a subject."""
        noun, chance = self._dice.pick(nouns), self._dice.roll()
        if noun.kind == "person":
            if chance < 0.35:
                return self._dice.pick(PERSONS)
            if chance < 0.47:
                return self.name()
            if chance < 0.5:
                return self._pair()
        return self.phrase(noun, known=known or chance > 0.6, light=light, digits=False)

    def other(
        self,
        nouns: tuple[Noun, ...],
        subject: Nominal | None,
        *,
        known: bool = False,
        light: bool = False,
        pronoun: bool = True,
    ) -> Nominal:
        """Sample a phrase that differs from the subject."""
        noun, chance = self._dice.pick(nouns), self._dice.roll()
        if noun.kind == "person" and chance < 0.3:
            if pronoun and chance < 0.14:
                return self._other_person(subject)
            return self._other_name(subject)
        while isinstance(subject, Phrase) and subject.noun is noun:
            noun = self._dice.pick(nouns)
        return self.phrase(noun, known=known, light=light)

    def phrase(
        self, noun: Noun, *, known: bool = False, light: bool = False, digits: bool = True
    ) -> Phrase:
        """Sample a noun with an article, a number or an owner, perhaps with an adjective."""
        if noun.mass:
            article = self._dice.pick(_KNOWN_MASS if known else _MASS)
        elif noun.owned == "often" and self._dice.happens(0.8):
            article = self._dice.pick(_RELATIONS)
        else:
            article = self._dice.pick(_KNOWN if known else _ANY)
        return self._complete(
            noun,
            article,
            0.1 if light else 0.28,
            digits=digits,
            plural=0.1 if noun.owned == "often" else 0.25,
        )

    def new(self, noun: Noun, *, light: bool = False) -> Phrase:
        """Sample an indefinite phrase, which was not mentioned before."""
        return self._complete(noun, self._dice.pick(_NEW), 0.1 if light else 0.28)

    def place(self, place: Place) -> Prepositional:
        """Sample a place, or a person after `with` or `for`."""
        noun = self._dice.pick(place.nouns)
        article = self._dice.pick(_PLACES)
        return Prepositional(place.preposition, self._complete(noun, article, 0.2, plural=0.08))

    def name(self) -> Name:
        """Sample a person's name."""
        return self._dice.pick(self._words.people)

    def _complete(
        self,
        noun: Noun,
        article: Article,
        adjective: float,
        *,
        digits: bool = True,
        plural: float = 0.25,
    ) -> Phrase:
        """Complete the phrase with this article: sample its number and adjective."""
        dice = self._dice
        if noun.owned == "never" and (article is None or article in POSSESSIVES):
            article = THE
        if article is None:
            article, owner, number = THE, self._owner(noun), None
            is_plural = not noun.mass and dice.happens(plural)
        else:
            owner = None
            is_plural = not noun.mass and self._is_plural(article, plural)
            number = self._number(digits) if article is BARE and is_plural else None
        quality = self._adjective(noun) if dice.happens(adjective) else None
        very = quality is not None and quality.kind != "colour" and dice.happens(0.12)
        return Phrase(noun, article, is_plural, number, very, quality, owner)

    def _is_plural(self, article: Determiner, probability: float) -> bool:
        """Sample the number with this probability if the article allows both."""
        singular, plural = article.english
        return self._dice.happens(probability) if singular and plural else not singular

    def _adjective(self, noun: Noun) -> Adjective | None:
        menu = self._adjectives[noun]
        return self._dice.pick(menu) if menu else None

    def _number(self, digits: bool) -> Number | None:
        """Sample a number for half of the plurals without an article."""
        chance = self._dice.roll()
        if chance < 0.4:
            return self._dice.pick(self._words.numbers)
        return self._dice.pick(self._words.digits) if chance < 0.55 and digits else None

    def _owner(self, owned: Noun) -> Phrase | Name:
        if self._dice.happens(0.5):
            return self.name()
        person = self._dice.pick(self._persons)
        while person is owned:
            person = self._dice.pick(self._persons)
        return self._someone(person)

    def _someone(self, person: Noun) -> Phrase:
        return Phrase(person, THE if person.owned == "never" else self._dice.pick(_OWNERS))

    def _pair(self) -> Pair:
        first: Phrase | Name = self.name()
        second: Phrase | Name = self._other_name(first)
        if self._dice.happens(0.5):
            second = self._someone(self._dice.pick(self._persons))
        return Pair(first, second)

    def _other_person(self, subject: Nominal | None) -> Pronoun:
        pronoun = self._dice.pick(PERSONS)
        if isinstance(subject, Pronoun) and pronoun in _CLASHES.get(subject, ()):
            return self._dice.pick((HE, SHE, THEM))
        return pronoun

    def _other_name(self, subject: Nominal | None) -> Name:
        taken = (subject.first, subject.second) if isinstance(subject, Pair) else (subject,)
        name = self.name()
        while name in taken:
            name = self.name()
        return name
