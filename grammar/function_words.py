"""Closed word classes: articles, pronouns, modal verbs, conjunctions."""

from typing import Final

from grammar.conjugation import english_verb, german_verb, modal_forms, past_forms
from grammar.declension import THE as DER
from grammar.declension import like_a, like_this
from grammar.words import (
    DATIVE,
    FIRST,
    MIXED,
    SECOND,
    STRONG,
    THEY,
    THIRD,
    WE,
    WEAK,
    Adverbial,
    Conjunction,
    Determiner,
    EnglishVerb,
    GermanVerb,
    Modal,
    Preposition,
    Pronoun,
    Verb,
)


def _determiner(
    english: tuple[str, str],
    german: tuple[str, ...],
    declension: int,
    *,
    definite: bool,
) -> Determiner:
    return Determiner(english[0] or english[1], english, german, declension, definite)


THE: Final = _determiner(("the", "the"), DER, WEAK, definite=True)
THIS: Final = _determiner(("this", "these"), like_this("dies"), WEAK, definite=True)
EVERY: Final = _determiner(("every", ""), like_this("jed"), WEAK, definite=False)
ALL: Final = _determiner(("", "all"), like_this("all"), WEAK, definite=False)
A: Final = _determiner(("a", ""), like_a("ein"), MIXED, definite=False)
MANY: Final = _determiner(("", "many"), like_this("viel"), STRONG, definite=False)
SOME: Final = _determiner(("", "some"), like_this("einig"), STRONG, definite=False)
BARE: Final = Determiner("bare", ("", ""), (), STRONG, definite=False)
"""No article: water, dogs, three dogs."""

POSSESSIVES: Final = tuple(
    _determiner((english, english), like_a(german), MIXED, definite=True)
    for english, german in (
        ("my", "mein"),
        ("your", "dein"),
        ("his", "sein"),
        ("her", "ihr"),
        ("our", "unser"),
        ("their", "ihr"),
    )
)

I: Final = Pronoun(("I", "me"), ("ich", "mich", "mir"), FIRST)  # noqa: E741
YOU: Final = Pronoun(("you", "you"), ("du", "dich", "dir"), SECOND)
HE: Final = Pronoun(("he", "him"), ("er", "ihn", "ihm"), THIRD)
SHE: Final = Pronoun(("she", "her"), ("sie", "sie", "ihr"), THIRD)
US: Final = Pronoun(("we", "us"), ("wir", "uns", "uns"), WE)
THEM: Final = Pronoun(("they", "them"), ("sie", "sie", "ihnen"), THEY)
WHO: Final = Pronoun(("who", "who"), ("wer", "wen", "wem"), THIRD, asks=True)
WHAT: Final = Pronoun(("what", "what"), ("was", "was", "was"), THIRD, asks=True)
IT: Final = Pronoun(("it", "it"), ("es", "es", "ihm"), THIRD)
"""Only for the weather: for a thing, German would need its gender."""

PERSONS: Final = (I, I, YOU, YOU, HE, SHE, US, THEM)
"""Speakers mention themselves and their listener most often."""


def _word(english: str, german: str) -> Adverbial:
    return Adverbial(((english,),), ((german,),))


VERY: Final = _word("very", "sehr")
TOO: Final = _word("too", "zu")
WHERE: Final = _word("where", "wo")
WHERE_TO: Final = _word("where", "wohin")
"""With verbs of motion. English does not distinguish it from WHERE."""
WHEN: Final = _word("when", "wann")
WHY: Final = _word("why", "warum")

IN: Final = Preposition(("in",), "in", DATIVE)
TO: Final = Preposition(("to",), "nach", DATIVE)
FROM: Final = Preposition(("from",), "aus", DATIVE)
"""For cities and countries."""

AND: Final = Conjunction("and", "und", subordinates=False)
BUT: Final = Conjunction("but", "aber", subordinates=False, comma=True)
THAT: Final = Conjunction("that", "dass", subordinates=True)
WHETHER: Final = Conjunction("if", "ob", subordinates=True)
IF: Final = Conjunction("if", "wenn", subordinates=True)
WHENEVER: Final = Conjunction("when", "wenn", subordinates=True)
ONCE: Final = Conjunction("when", "als", subordinates=True)
"""`When` in the past."""
BECAUSE: Final = Conjunction("because", "weil", subordinates=True)
ALTHOUGH: Final = Conjunction("although", "obwohl", subordinates=True)
WHILE: Final = Conjunction("while", "während", subordinates=True)
BEFORE: Final = Conjunction("before", "bevor", subordinates=True)


def _modal(english: str, english_past: str, third: str, infinitive: str, past: str) -> Modal:
    forms = modal_forms(third, infinitive)
    return Modal(tuple(english.split()), tuple(english_past.split()), None, forms, past_forms(past))


CAN: Final = _modal("can", "could", "kann", "können", "konnte")
MUST: Final = _modal("must", "had to", "muss", "müssen", "musste")
MAY: Final = _modal("may", "", "darf", "dürfen", "durfte")
SHOULD: Final = Modal(("should",), (), None, past_forms("sollte"), ())
WOULD_LIKE: Final = Modal(("would", "like", "to"), (), None, past_forms("möchte"), ())
WANT: Final = Modal(
    (),
    (),
    english_verb("want"),
    modal_forms("will", "wollen"),
    past_forms("wollte"),
)
LIKE: Final = Modal((), (), english_verb("like"), (), ())

BE: Final = Verb(
    "be",
    EnglishVerb("be", "is", "was", "been", "being"),
    GermanVerb(
        "",
        ("bin", "bist", "ist", "sind", "sind"),
        past_forms("war"),
        "sei",
        "sein",
        ("zu", "sein"),
        "gewesen",
        takes_sein=True,
    ),
    stative=True,
)
RAIN: Final = Verb("rain", english_verb("rain"), german_verb("regnen"))
SNOW: Final = Verb("snow", english_verb("snow"), german_verb("schneien"))
