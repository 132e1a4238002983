"""What the grammar knows of a word: its forms in both languages.

Words are compared by identity: each is made once, by the lexicon, and two that look alike
(`to know` a person and to know that something is so) are two words.
"""

from dataclasses import dataclass
from typing import Literal

FIRST, SECOND, THIRD, WE, THEY = range(5)
"""Person and number: the index of a verb's forms. `you` is one person, and a familiar one."""

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
MASCULINE, FEMININE, NEUTER, PLURAL = range(4)
"""A table of German endings has a row of these four for each case."""

WEAK, MIXED, STRONG = range(3)
"""How an adjective is declined: after `der`, after `ein`, after nothing that shows the case."""

Pieces = tuple[tuple[str, ...], ...]
"""A fixed phrase in pieces; the n-th says the same as the n-th of the other language."""


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
    """A personal or an asking pronoun."""

    english: tuple[str, str]
    """As a subject and as an object."""
    german: tuple[str, str, str]
    """Nominative, accusative, dative."""
    agreement: int
    asks: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Determiner:
    """An article or what stands in its place."""

    name: str
    english: tuple[str, str]
    """Before a singular and before a plural; empty where nothing is said."""
    german: tuple[str, ...]
    """Sixteen forms, `4 * case + column`; empty where nothing is said."""
    declension: int
    """What follows from it for adjectives."""
    definite: bool
    """What is known stands before adverbs in German, what is new or counted behind them."""


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
    """What German endings follow: teuer, but ein teur-es Auto."""
    kind: Literal["lasting", "passing", "colour"]
    """A passing one goes with a time (tired now, but not old now), a colour with no degree."""


@dataclass(frozen=True, slots=True, eq=False)
class Adverbial:
    """A phrase that never changes: `often`, `on Monday`, `where`."""

    english: Pieces
    german: Pieces


@dataclass(frozen=True, slots=True, eq=False)
class Preposition:
    """A preposition in one of its meanings, and so with one case."""

    english: tuple[str, ...]
    german: str
    case: int


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """A word between clauses; after some of them the German verb goes to the end."""

    english: str
    german: str
    subordinates: bool
    comma: bool = False
    """Whether English has a comma before it. German has one before all of them but `und`."""


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
    """A verb in one of its uses: with its forms, and what it governs."""

    name: str
    english: EnglishVerb
    german: GermanVerb
    case: int = ACCUSATIVE
    """The German case of its object."""
    preposition: Preposition | None = None
    """What its object stands behind in both languages: `wait for`, `warten auf`."""
    stative: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Modal:
    """What stands before an infinitive: `can`, `wants to`."""

    english: tuple[str, ...]
    """The words of the present where it is an auxiliary; empty where it is a verb like others."""
    english_past: tuple[str, ...]
    """Empty where the past is not said so."""
    verb: EnglishVerb | None
    present: tuple[str, ...]
    """Empty for `likes to`: that is no verb in German but the adverb `gern`."""
    past: tuple[str, ...]
