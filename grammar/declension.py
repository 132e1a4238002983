"""Declines German nouns, articles and adjectives."""

from typing import Final

from grammar.words import FEMININE, MASCULINE, MIXED, NEUTER, STRONG, WEAK

GENDERS: Final = {"der": MASCULINE, "die": FEMININE, "das": NEUTER}


def _table(forms: str) -> tuple[str, ...]:
    """Return sixteen forms: nominative, accusative, dative, genitive; each m., f., n., plural."""
    return tuple("" if form == "-" else form for form in forms.split())


THE: Final = _table("der die das die  den die das die  dem der dem den  des der des der")

WHO: Final = _table(
    "der die das die  den die das die  dem der dem denen  dessen deren dessen deren"
)
"""The relative pronoun."""

_THIS = _table("er e es e  en e es e  em er em en  es er es er")
_A = _table("- e - e  en e - e  em er em en  es er es er")

ADJECTIVE_ENDINGS: Final = {
    WEAK: _table("e e e en  en e e en  en en en en  en en en en"),
    MIXED: _table("er e es en  en e es en  en en en en  en en en en"),
    STRONG: _table("er e es e  en e es e  em er em en  en er en er"),
}

CONTRACTIONS: Final = {
    ("an", "dem"): "am",
    ("in", "dem"): "im",
    ("von", "dem"): "vom",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("in", "das"): "ins",
}


def like_this(stem: str) -> tuple[str, ...]:
    """Return the forms of `dieser`, `jeder`, `welcher`, `viele`."""
    return tuple(stem + ending for ending in _THIS)


def like_a(stem: str) -> tuple[str, ...]:
    """Return the forms of `ein`, `kein`, `mein`."""
    return tuple(stem + ending for ending in _A)


def noun_cases(gender: int, nominative: str, genitive: str, plural: str) -> tuple[str, ...]:
    """Return the four cases of the singular, then those of the plural."""
    weak = gender == MASCULINE and genitive in (nominative + "n", nominative + "en")
    oblique = genitive if weak else nominative
    dative_plural = plural if plural.endswith(("n", "s")) else plural + "n"
    singular = (nominative, oblique, oblique, genitive)
    return (*singular, plural, plural, dative_plural, plural)
