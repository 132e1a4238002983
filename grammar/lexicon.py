"""Parses the word tables into a lexicon."""

import textwrap
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from grammar import modifiers, nouns, verbs
from grammar.conjugation import english_verb, german_verb
from grammar.declension import GENDERS, noun_cases
from grammar.function_words import BE
from grammar.meaning import FUTURE, PAST, PERFECT, PRESENT, PROGRESSIVE
from grammar.words import (
    ACCUSATIVE,
    DATIVE,
    Adjective,
    Adverbial,
    Name,
    Noun,
    Number,
    Preposition,
    Verb,
)

_CASES: Final = {"accusative": ACCUSATIVE, "dative": DATIVE}

_PARTICLES: Final = frozenset({"up", "off", "on", "away", "along"})
"""An English pronoun would have to come before these: `picks him up`."""


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A verb and its possible complements."""

    frame: str
    verb: Verb
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    manners: tuple[Adverbial, ...] = ()
    marks: frozenset[str] = frozenset()
    """The marks from `verbs.py`, and `name` if its object cannot be a pronoun."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A preposition and the nouns that may follow it."""

    preposition: Preposition
    nouns: tuple[Noun, ...]


Menus = tuple[tuple[Adverbial, ...], ...]
"""Groups of phrases. First a group is chosen, then one of its phrases."""


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Every word, in the order of the tables."""

    nouns: dict[str, Noun]
    people: tuple[Name, ...]
    cities: tuple[Name, ...]
    countries: tuple[Name, ...]
    uses: dict[str, tuple[Use, ...]]
    """The verbs by their complements."""
    adjectives: dict[Adjective, tuple[Noun, ...]]
    places: dict[str, tuple[Place, ...]]
    """The places by sense: staying, resting, going, company, favour."""
    numbers: tuple[Number, ...]
    """Numbers in words."""
    digits: tuple[Number, ...]
    adverbs: dict[int, tuple[Adverbial, ...]]
    times: dict[int, Menus]
    """Both are indexed by tense."""
    here: tuple[Adverbial, ...]
    home: Adverbial


@cache
def lexicon() -> Lexicon:
    """Return the lexicon, parsed once."""
    known = _nouns()
    return Lexicon(
        nouns=known,
        people=_names(nouns.PEOPLE),
        cities=_names(nouns.CITIES),
        countries=_names(nouns.COUNTRIES),
        uses=_all_uses(known),
        adjectives=_adjectives(known),
        places=_places(known),
        numbers=tuple(Number(*pair) for pair in _pairs(modifiers.NUMBERS)),
        digits=tuple(Number(str(n), str(n)) for n in range(15, 100, 5)),
        adverbs={
            PRESENT: _adverbials(modifiers.ADVERBS["present"]),
            PROGRESSIVE: _adverbials(modifiers.ADVERBS["progressive"]),
            PAST: _adverbials(modifiers.ADVERBS["past"]),
            PERFECT: _adverbials(modifiers.ADVERBS["perfect"]),
            FUTURE: _adverbials(modifiers.ADVERBS["future"]),
        },
        times=_times(),
        here=_adverbials(modifiers.HERE),
        home=_adverbials(modifiers.HOME)[0],
    )


# --- reading a table ---------------------------------------------------------------------------


def _entries(table: str) -> list[str]:
    """Return the lines of a table. A line with deeper indentation continues the previous one."""
    return textwrap.dedent(table).strip().replace("\n ", " ").splitlines()


def _pairs(words: str) -> list[tuple[str, str]]:
    """Parse `Berlin Munich/München`: each word with its translation, which may be itself."""
    pairs = (word.partition("/") for word in words.split())
    return [(english, german or english) for english, _, german in pairs]


def _names(words: str) -> tuple[Name, ...]:
    return tuple(Name(*pair) for pair in _pairs(words))


def _adverbials(table: str) -> tuple[Adverbial, ...]:
    """Parse `at/home = zu/Hause, here = hier`."""
    entries = (entry.split(" = ") for entry in table.split(","))
    return tuple(adverbial(english, german) for english, german in entries)


def adverbial(english: str, german: str) -> Adverbial:
    """Return a fixed phrase, split at its slashes into corresponding parts."""
    pieces = [
        tuple(tuple(p.split()) for p in text.strip().split("/")) for text in (english, german)
    ]
    assert len(pieces[0]) == len(pieces[1]), (english, german)
    return Adverbial(*pieces)


def _nouns() -> dict[str, Noun]:
    entries = (_noun(kind, line) for kind, table in nouns.NOUNS.items() for line in _entries(table))
    return {noun.name: noun for noun in entries}


def _noun(kind: str, line: str) -> Noun:
    english, german = line.split(" = ")
    name, _, plural = english.partition("/")
    article, nominative, *forms = german.split()
    genitive, german_plural = forms if len(forms) == 2 else (nominative, *forms)
    return Noun(
        name,
        kind,
        (name, plural or _plural(name)),
        GENDERS[article],
        noun_cases(GENDERS[article], nominative, genitive, german_plural),
        mass=german_plural == "-",
        owned=_owned(name),
    )


def _owned(name: str) -> Literal["often", "sometimes", "never"]:
    if name in nouns.RELATIONS.split():
        return "often"
    return "never" if name in nouns.NOT_OWNED.split() else "sometimes"


def _plural(name: str) -> str:
    if name.endswith(("s", "sh", "ch", "x", "ato")):
        return name + "es"
    if name.endswith("y") and name[-2] not in "aeou":
        return name[:-1] + "ies"
    return name + "s"


def _choice(words: str, known: dict[str, Noun]) -> tuple[Noun, ...]:
    """Parse `@animal tree`: all nouns of a kind, and single nouns."""
    chosen: dict[Noun, None] = {}
    for word in words.replace("-", "").split():
        if word.startswith("@"):
            chosen |= dict.fromkeys(noun for noun in known.values() if noun.kind == word[1:])
        else:
            chosen[known[word]] = None
    return tuple(chosen)


def _all_uses(known: dict[str, Noun]) -> dict[str, tuple[Use, ...]]:
    where = _choice("@person @animal @thing @clothing book letter car bus", known)
    tables = {
        "alone": verbs.ALONE,
        "object": verbs.WITH_OBJECT,
        "dative": verbs.WITH_DATIVE,
        "recipient": verbs.WITH_RECIPIENT,
        "preposition": verbs.WITH_PREPOSITION,
        "going": verbs.GOING,
        "coming": verbs.COMING,
        "staying": verbs.STAYING,
        "knowing": verbs.KNOWING,
        "asking": verbs.ASKING,
        "trying": verbs.TRYING,
    }
    manners = {manner.english[0][0]: manner for manner in _adverbials(modifiers.MANNERS)}
    uses = {
        frame: tuple(_use(frame, line, known, manners) for line in _entries(table))
        for frame, table in tables.items()
    }
    uses["staying"] += (Use("staying", BE, where, ()),)
    return uses


def _use(frame: str, line: str, known: dict[str, Noun], manners: dict[str, Adverbial]) -> Use:
    english, german, subjects, objects, rest = (part.strip() for part in line.split(";"))
    english, _, behind = english.partition(" + ")
    german, _, governed = german.partition(" + ")
    preposition = None
    if governed:
        word, case = governed.split()
        preposition = Preposition((behind,), word, _CASES[case])
    forms = english_verb(english)
    marks = rest.split()
    verb = Verb(
        " ".join((forms.base, *forms.tail, *behind.split())),
        forms,
        german_verb(german),
        DATIVE if frame == "dative" else ACCUSATIVE,
        preposition,
        "stative" in marks,
    )
    how = tuple(manners[mark] for mark in marks if mark in manners)
    if _PARTICLES & set(forms.tail):
        marks.append("name")
    return Use(
        frame, verb, _choice(subjects, known), _choice(objects, known), how, frozenset(marks)
    )


def _adjectives(known: dict[str, Noun]) -> dict[Adjective, tuple[Noun, ...]]:
    found = {}
    for line in _entries(modifiers.ADJECTIVES):
        both, said_of, *marks = (part.strip() for part in line.split(";"))
        english, german = both.split(" = ")
        positive, _, stem = german.partition("/")
        adjective = Adjective(english, positive, stem or positive, _kind(marks))
        found[adjective] = _choice(said_of, known)
    return found


def _places(known: dict[str, Noun]) -> dict[str, tuple[Place, ...]]:
    places: dict[str, tuple[Place, ...]] = {}
    for line in _entries(modifiers.PREPOSITIONS):
        both, said_of, sense = line.split(" ; ")
        english, german = both.split(" = ")
        word, case = german.split()
        preposition = Preposition(tuple(english.split()), word, _CASES[case])
        place = Place(preposition, _choice(said_of, known))
        places[sense] = (*places.get(sense, ()), place)
    return places


def _kind(marks: list[str]) -> Literal["lasting", "passing", "colour"]:
    if "colour" in marks:
        return "colour"
    return "passing" if "passing" in marks else "lasting"


def _times() -> dict[int, Menus]:
    """Return the adverbials of time for each tense."""
    groups = {name: _adverbials(table) for name, table in modifiers.TIMES.items()}
    clock = tuple(adverbial(f"at/{hour}/o'clock", f"um/{hour}/Uhr") for hour in range(1, 13))
    days = tuple(adverbial(f"on/{e}", f"am/{g}") for e, g in _pairs(modifiers.DAYS))
    months = tuple(adverbial(f"in/{e}", f"im/{g}") for e, g in _pairs(modifiers.MONTHS))
    years = tuple(adverbial(f"in/{year}", f"im Jahr/{year}") for year in range(2010, 2020))
    today, part = groups["today"], groups["part"]
    return {
        PRESENT: (groups["habit"], part, groups["season"], clock),
        PROGRESSIVE: (groups["now"], today),
        PAST: (groups["past"], groups["past"], days, part, months, clock, years),
        PERFECT: (today,),
        FUTURE: (groups["future"], groups["future"], today, days, clock, months),
    }
