"""The meaning of a sentence, independent of a language.

A meaning is a tree of words of the lexicon. `english.py` and `german.py` each traverse it.
"""

from typing import Final, Literal, NamedTuple

from grammar import parts
from grammar.words import (
    THEY,
    THIRD,
    Adjective,
    Adverbial,
    Conjunction,
    Determiner,
    Modal,
    Name,
    Noun,
    Number,
    Preposition,
    Pronoun,
    Verb,
)

PRESENT, PROGRESSIVE, PAST, PERFECT, FUTURE = range(5)
"""The English tenses. German has one form for the first two; the past is its preterite."""


# --- phrases -----------------------------------------------------------------------------------


class Phrase(NamedTuple):
    """A noun with its determiner, number, adjective and relative clause."""

    noun: Noun
    determiner: Determiner
    plural: bool = False
    number: Number | None = None
    very: bool = False
    adjective: Adjective | None = None
    owner: "Phrase | Name | None" = None
    """Replaces the determiner: `the man's dog`."""
    relative: "Relative | None" = None


class Pair(NamedTuple):
    """Two phrases joined by `and`."""

    first: "Phrase | Name"
    second: "Phrase | Name"


Nominal = Phrase | Name | Pronoun | Pair


class Relative(NamedTuple):
    """A clause about a noun, in which the noun fills the open role."""

    role: Literal["subject", "object", "place"]
    clause: "Clause"
    preposition: Preposition | None = None
    """For the role of a place: `the house in which …`."""


class Prepositional(NamedTuple):
    """A preposition and its phrase."""

    preposition: Preposition
    nominal: Nominal


class Quality(NamedTuple):
    """A predicative adjective: `old`, `very old`."""

    adjective: Adjective
    degree: Adverbial | None = None


Mood = Literal["statement", "question", "command"]


# --- clauses -----------------------------------------------------------------------------------


class Clause(NamedTuple):
    """A verb with everything that belongs to it."""

    verb: Verb
    subject: Nominal | None = None
    """None in commands, in infinitives, and if a relative pronoun takes its place."""
    object: Nominal | None = None
    recipient: Nominal | None = None
    tense: int = PRESENT
    modal: Modal | None = None
    negated: bool = False
    adverb: Adverbial | None = None
    manner: Adverbial | None = None
    place: Prepositional | Adverbial | None = None
    time: Adverbial | None = None
    quality: Quality | None = None
    infinitive: "Clause | None" = None
    """The action that is tried, forgotten or promised: `to open the door`."""
    front: int = parts.SUBJECT
    """The first part of the clause: SUBJECT, OBJECT, PLACE or TIME."""


class Joined(NamedTuple):
    """A second clause, and its relation to the first."""

    conjunction: Conjunction | None
    """None before an indirect question, which starts with a question word."""
    clause: Clause
    leads: bool = False
    """Whether it precedes the main clause."""


class Sentence(NamedTuple):
    """A main clause, perhaps with a second."""

    clause: Clause
    mood: Mood = "statement"
    joined: Joined | None = None
    please: bool = False


STOPS: Final = {"statement": ".", "question": "?", "command": "!"}


def agreement(nominal: Nominal) -> int:
    """Return the person and number of the verb of this subject."""
    if isinstance(nominal, Phrase):
        return THEY if nominal.plural else THIRD
    if isinstance(nominal, Pronoun):
        return nominal.agreement
    return THEY if isinstance(nominal, Pair) else THIRD


def asks(nominal: Nominal | None) -> bool:
    """Whether it is a question word: who, what."""
    return isinstance(nominal, Pronoun) and nominal.asks


def is_definite(nominal: Nominal) -> bool:
    """Whether the listener knows which one is meant."""
    if isinstance(nominal, Phrase):
        return nominal.determiner.definite or nominal.owner is not None
    return True
