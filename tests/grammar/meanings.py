"""Meanings built by hand, in few words."""

from grammar.lexicon import adverbial, lexicon
from grammar.meaning import (
    Clause,
    Phrase,
    Prepositional,
    Sentence,
)
from grammar.words import (
    Determiner,
    Name,
    Preposition,
    Verb,
)

from grammar import function_words as f

WORDS = lexicon()
MY, YOUR, HIS, HER, OUR, THEIR = f.POSSESSIVES
PEOPLE = {name.english: name for name in WORDS.people}
CITIES = {name.english: name for name in (*WORDS.cities, *WORDS.countries)}
ADJECTIVES = {adjective.name: adjective for adjective in WORDS.adjectives}
HERE = {" ".join(sum(place.english, ())): place for place in WORDS.here}
NOW = adverbial("now", "jetzt")
TODAY = adverbial("today", "heute")
YESTERDAY = adverbial("yesterday", "gestern")
TOMORROW = adverbial("tomorrow", "morgen")
OFTEN = adverbial("often", "oft")
NEVER = adverbial("never", "nie")
ALREADY = adverbial("already", "schon")


def verb(name: str, frame: str | None = None) -> Verb:
    frames = [frame] if frame else list(WORDS.uses)
    return next(u.verb for at in frames for u in WORDS.uses[at] if u.verb.name == name)


def np(determiner: Determiner, noun: str, adjective: str | None = None, **more: object) -> Phrase:
    quality = ADJECTIVES[adjective] if adjective else None
    phrase = Phrase(WORDS.nouns[noun], determiner, adjective=quality)
    return phrase._replace(**more)  # type: ignore[arg-type]


def the(noun: str, adjective: str | None = None, **more: object) -> Phrase:
    return np(f.THE, noun, adjective, **more)


def a(noun: str, adjective: str | None = None, **more: object) -> Phrase:
    return np(f.A, noun, adjective, **more)


def some(noun: str, adjective: str | None = None, **more: object) -> Phrase:
    return np(f.BARE, noun, adjective, plural=not WORDS.nouns[noun].mass, **more)


def preposition(english: str, sense: str = "staying") -> Preposition:
    words = tuple(english.split())
    return next(p.preposition for p in WORDS.places[sense] if p.preposition.english == words)


def at(english: str, nominal: Phrase | Name, sense: str = "staying") -> Prepositional:
    return Prepositional(preposition(english, sense), nominal)


def says(clause: Clause) -> Sentence:
    return Sentence(clause)


def asks(clause: Clause) -> Sentence:
    return Sentence(clause, "question")


ANNA, PETER, PAUL = PEOPLE["Anna"], PEOPLE["Peter"], PEOPLE["Paul"]
EMMA = PEOPLE["Emma"]
