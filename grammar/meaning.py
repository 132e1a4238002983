"""What a sentence says, before it is said in a language.

A meaning is a tree of words of the lexicon. `english.py` and `german.py` walk it each on its own.
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
"""Tenses as English has them. German says the first two alike; the past is its preterite."""


# --- phrases -----------------------------------------------------------------------------------


class Phrase(NamedTuple):
    """A noun with what stands about it."""

    noun: Noun
    determiner: Determiner
    plural: bool = False
    number: Number | None = None
    very: bool = False
    adjective: Adjective | None = None
    owner: "Phrase | Name | None" = None
    """Said instead of the determiner: `the man's dog`."""
    relative: "Relative | None" = None


class Pair(NamedTuple):
    """Two joined by `and`."""

    first: "Phrase | Name"
    second: "Phrase | Name"


Nominal = Phrase | Name | Pronoun | Pair


class Relative(NamedTuple):
    """A clause about a noun, in which the noun plays a role that the clause leaves open."""

    role: Literal["subject", "object", "place"]
    clause: "Clause"
    preposition: Preposition | None = None
    """For the role of a place: `the house in which …`."""


class Prepositional(NamedTuple):
    """A phrase behind a preposition."""

    preposition: Preposition
    nominal: Nominal


class Quality(NamedTuple):
    """What a subject is: `old`, `very old`."""

    adjective: Adjective
    degree: Adverbial | None = None


Mood = Literal["statement", "question", "command"]


# --- clauses -----------------------------------------------------------------------------------


class Clause(NamedTuple):
    """A verb with everything that belongs to it."""

    verb: Verb
    subject: Nominal | None = None
    """None in commands, infinitives, and where a relative pronoun takes its place."""
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
    """What is tried, forgotten or promised: `to open the door`."""
    front: int = parts.SUBJECT
    """The part that opens the clause: SUBJECT, OBJECT, PLACE or TIME."""


class Joined(NamedTuple):
    """A second clause, and how it belongs to the first."""

    conjunction: Conjunction | None
    """None before an indirect question, which brings its own word in front."""
    clause: Clause
    leads: bool = False
    """Whether it stands before the main clause."""


class Sentence(NamedTuple):
    """A main clause, perhaps with a second."""

    clause: Clause
    mood: Mood = "statement"
    joined: Joined | None = None
    please: bool = False


STOPS: Final = {"statement": ".", "question": "?", "command": "!"}


def agreement(nominal: Nominal) -> int:
    """The person and number that a subject asks of its verb."""
    if isinstance(nominal, Phrase):
        return THEY if nominal.plural else THIRD
    if isinstance(nominal, Pronoun):
        return nominal.agreement
    return THEY if isinstance(nominal, Pair) else THIRD


def asks(nominal: Nominal | None) -> bool:
    """Whether it is a question: who, what."""
    return isinstance(nominal, Pronoun) and nominal.asks


def is_definite(nominal: Nominal) -> bool:
    """Whether the hearer knows which one is meant."""
    if isinstance(nominal, Phrase):
        return nominal.determiner.definite or nominal.owner is not None
    return True
