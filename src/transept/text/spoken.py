"""Times of day in words, in English and French: `a quarter to six`, `six heures moins le quart`.

A model that has read few of them writes other times. In digits, they are copied.
"""

import re
from typing import Final

_NUMBERS: Final = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "quarter": 15, "twenty": 20,
    "twenty-five": 25, "half": 30,
    "une": 1, "deux": 2, "trois": 3, "quatre": 4, "cinq": 5, "sept": 7, "huit": 8, "neuf": 9,
    "dix": 10, "onze": 11, "douze": 12, "midi": 12, "minuit": 24, "quart": 15, "vingt": 20,
    "vingt-cinq": 25, "demi": 30, "demie": 30,
}  # fmt: skip
_HOUR = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
_MINUTES = r"\b(?:five|ten|twenty(?:[-\s]five)?)"
# `From ten to five` has two times, and `trois heures et demie` may be a duration.
_AT = r"(?:(?<=\bat\s)|(?<=\bis\s)|(?<='s\s)|(?<=\bby\s)|(?<=\buntil\s)|(?<=\bbefore\s))"
_HEURES = (
    r"(?:(?:une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze)\sheures?"
    r"|(?:1?\d|2[0-4])\s?h(?:eures?)?)\b"
)
_NOON = r"\b(?:midi|minuit)\b"
_MORE = r"\s(?:et\s(?:quart|demie?)|(?:cinq|dix|vingt(?:-cinq)?)(?!\s(?:minute|seconde)))\b"
_LESS = r"\smoins\s(?:le\squart|cinq|dix|vingt(?:-cinq)?)\b"
_AT_FRENCH = r"(?:(?<=\bà\s)|(?<=\best\s)|(?<=\bvers\s)|(?<=\bdès\s)|(?<=jusqu'à\s))"
SPOKEN: Final = {
    "en": rf"""(?i:\b(?:a\s)?quarter\s(?:past|to)\s{_HOUR} | \bhalf\spast\s{_HOUR}
        | {_MINUTES}(?:\sminutes)?\spast\s{_HOUR} | {_MINUTES}\sminutes\sto\s{_HOUR}
        | {_AT}{_MINUTES}\sto\s{_HOUR})""",
    "fr": rf"""(?i:(?:(?<!\w){_HEURES}|{_NOON}){_LESS} | {_NOON}{_MORE}
        | {_AT_FRENCH}{_HEURES}{_MORE}(?!\s(?:de|d')\b))""",
}  # fmt: skip
"""Patterns of such times by language, to be compiled with `re.VERBOSE`."""
MAY_BE_SPOKEN = re.compile(rf"\b(?:past|moins|et\s(?:quart|demi)|to\s{_HOUR})|{_NOON}|heure", re.I)
"""Matches somewhere in every text with such a time and without digits."""
_ENGLISH = re.compile(r"(?:a )?(?P<minute>[\w-]+?)(?: minutes)? (?P<way>past|to) (?P<hour>\w+)")
_FRENCH = re.compile(
    r"(?P<hour>\w+?)(?: ?h(?:eures?)?)? (?P<way>moins(?: le)? |et |)(?P<minute>[\w-]+)"
)


def spoken_time(text: str, source: str, target: str) -> str:
    """A time in words, in digits of the target language. Empty if the languages are not known.

    Example:
        >>> spoken_time("a quarter to one", "en", "fr"), spoken_time("half past three", "en", "fr")
        ('12 h 45', '3 h 30')
        >>> spoken_time("six heures moins dix", "fr", "en"), spoken_time("midi dix", "fr", "en")
        ('5:50', '12:10')
    """
    if (source, target) not in (("en", "fr"), ("fr", "en")):
        return ""
    form = _ENGLISH if source == "en" else _FRENCH
    found = form.fullmatch(" ".join(text.lower().split()).replace("twenty five", "twenty-five"))
    assert found is not None, "the pattern matches what SPOKEN does"
    hour, minute = _value(found["hour"]), _value(found["minute"])
    if found["way"].strip() in ("to", "moins", "moins le"):
        hour, minute = hour - 1 or 12, 60 - minute
    return f"{hour % 24} h {minute:02}" if target == "fr" else f"{hour % 24}:{minute:02}"


def _value(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]
