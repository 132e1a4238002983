"""Words and their forms in both languages.

Words are compared by identity. The lexicon creates each word once, and two that look alike
(`to know` a person and to know a fact) are different words.
"""

from dataclasses import dataclass
from typing import Literal

FIRST, SECOND, THIRD, WE, THEY = range(5)
"""Person and number: the index of a verb's forms. `you` is singular and informal."""

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
"""A table of German endings has a row of these four for each case."""

WEAK, MIXED, STRONG = range(3)
"""Declension of an adjective: after `der`, after `ein`, or after no word that shows the case."""

Pieces = tuple[tuple[str, ...], ...]
"""A fixed phrase in parts. The n-th part corresponds to the n-th of the other language."""


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun; a mass noun (water) has no plural."""

    name: str
    kind: str
    english: tuple[str, str]
    """Singular, plural."""
    gender: int
    german: tuple[str, ...]
    """The four cases of the singular, then those of the plural."""
    mass: bool
    owned: Literal["often", "sometimes", "never"]


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A person, a city or a country."""

    english: str
    german: str


@dataclass(frozen=True, slots=True, eq=False)
class Pronoun:
    """A personal or an interrogative pronoun."""

    english: tuple[str, str]
    """As a subject and as an object."""
    german: tuple[str, str, str]
    """Nominative, accusative, dative."""
    agreement: int
    asks: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    """An article, or a word in its place."""

    name: str
    english: tuple[str, str]
    """Before a singular and before a plural; empty if no word is used."""
    german: tuple[str, ...]
    """Sixteen forms, `4 * case + column`; empty if no word is used."""
    declension: int
    """The declension of adjectives after it."""
    definite: bool
    """In German, known phrases precede adverbs; new or counted ones follow them."""


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number from two upwards, in words or digits."""

    english: str
    german: str


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """A quality."""

    name: str
    german: str
    stem: str
    """The stem before German endings: teuer, but ein teur-es Auto."""
    kind: Literal["lasting", "passing", "colour"]
    """A passing one may have a time (tired now, but not old now); a colour has no degree."""


@dataclass(frozen=True, slots=True, eq=False)
class Adverbial:
    """A phrase that never changes: `often`, `on Monday`, `where`."""

    english: Pieces
    german: Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """A preposition in one of its meanings, which has one case."""

    english: tuple[str, ...]
    german: str
    case: int


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """A conjunction. After some, the German verb is at the end of the clause."""

    english: str
    german: str
    subordinates: bool
    comma: bool = False
    """Whether English has a comma before it. German has one before all except `und`."""


@dataclass(frozen=True, slots=True, eq=False)
class EnglishVerb:
    """The forms of an English verb, and the words that always follow it (`look for`)."""

    base: str
    third: str
    past: str
    participle: str
    progressive: str
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class GermanVerb:
    """The forms of a German verb. Finite forms are without the separable prefix."""

    prefix: str
    present: tuple[str, ...]
    past: tuple[str, ...]
    imperative: str
    infinitive: str
    with_zu: tuple[str, ...]
    """`zu öffnen`, but `anzurufen`."""
    participle: str
    takes_sein: bool


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb in one of its uses: its forms, and what it governs."""

    name: str
    english: EnglishVerb
    german: GermanVerb
    case: int = ACCUSATIVE
    """The German case of its object."""
    preposition: Preposition | None = None
    """The preposition of its object in both languages: `wait for`, `warten auf`."""
    stative: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """A verb before an infinitive: `can`, `wants to`."""

    english: tuple[str, ...]
    """The present of an auxiliary; empty for a full verb."""
    english_past: tuple[str, ...]
    """Empty if the past has another form."""
    verb: EnglishVerb | None
    present: tuple[str, ...]
    """Empty for `likes to`, which is the adverb `gern` in German, not a verb."""
    past: tuple[str, ...]
