"""Which numbers of a sentence its translation has lost.

Numbers that are not protected are left to the model, which writes them as the target language does:
`nine`, `70er Jahre`, `8 p.m.`. Now and then it loses one, or a part of one: `$100` becomes
`00 Dollar`.
"""

import re
from typing import Final

from transept.text.numbers import MONTHS

_WORDS: Final = {
    "en": (
        "one|first", "two|second", "three|third", "four", "five|fifth", "six", "seven", "eight",
        "nine|ninth", "ten", "eleven", "twelve|twelfth",
    ),
    "de": (
        "ein|erst", "zwei", "drei|dritt", "vier", "fünf", "sechs", "sieb", "acht", "neun", "zehn",
        "elf", "zwölf",
    ),
    "fr": (
        "un|premi", "deux", "trois", "quatr", "cinq", "six", "sept", "huit", "neuv|neuf", "dix",
        "onz", "douz",
    ),
}  # fmt: skip
"""The beginnings of the words for 1 to 12, and of the ordinals that begin in another way."""
_TENS: Final = {
    "en": ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"),
    "de": ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"),
    "fr": ("vingt", "trente", "quarante", "cinquante", "soixante", "soixante", "quatre", "quatre"),
}
"""The words for 20 to 90, which other words contain. In French, 80 is four times twenty."""
_NUMBER = re.compile(r"\d+")
# Not in `2011 180`, which is a year and a number.
_THOUSANDS = re.compile(r"(?<!\d)\d{1,3}(?:[\s.,'’]\d{3})+(?!\d)")
_SEPARATOR = re.compile(r"\D")
_HOUR = re.compile(r"Uhr|\d\s?(?:h|[ap]\.?m)\b")
_DATED: Final = {
    language: re.compile(rf"(?<=\d[.\s]){name}\b|(?<=\d\.\s){name}\b|\b{name}(?=\s\d)")
    for language, names in MONTHS.items()
    for name in [f"(?:{'|'.join(names)})"]
}
"""The name of a month next to a number. `May` alone is a verb too."""


def has_figures(text: str, languages: tuple[str, str]) -> bool:
    """Whether a text has numbers, and the languages are known, so that some can be lost."""
    return bool(_NUMBER.search(text)) and all(one in MONTHS for one in languages)


def loses_figures(text: str, output: str, languages: tuple[str, str]) -> bool:
    """Whether an output lacks a number of a text, or a month next to one.

    Example:
        >>> loses_figures("It costs $100.", "Es kostet 00 Dollar.", ("en", "de"))
        True
        >>> loses_figures("The 9th of 1000 in the 1970s", "Der neunte von 1.000", ("en", "de"))
        True
        >>> loses_figures("Um 20 Uhr am 9. Mai", "At 8 p.m. on May 9", ("de", "en"))
        False
    """
    if not has_figures(text, languages):
        return False
    source, target = languages
    lost = _numbers(text) - (given := _numbers(output))
    others = _in_words(output, target) | _in_other_forms(given, has_hours=bool(_HOUR.search(text)))
    named = {MONTHS[source].index(name) for name in _DATED[source].findall(text)}
    return not lost <= others or any(MONTHS[target][month] not in output for month in named)


def _numbers(text: str) -> set[str]:
    """The numbers of a text, without their separators of thousands and zeros before them."""
    found = _NUMBER.findall(_THOUSANDS.sub(lambda one: _SEPARATOR.sub("", one[0]), text))
    return {number.lstrip("0") or "0" for number in found}


def _in_words(output: str, language: str) -> set[str]:
    """The numbers that an output has in words. Of larger ones, those that begin with the ten."""
    lower = output.lower()
    small = {
        str(value)
        for value, word in enumerate(_WORDS[language], start=1)
        if re.search(rf"\b(?:{word})", lower)
    }
    tens = (value for value, word in enumerate(_TENS[language], start=2) if word in lower)
    return small | {f"{ten}{unit}" for ten in tens for unit in range(10)}


def _in_other_forms(numbers: set[str], *, has_hours: bool) -> set[str]:
    """Numbers that these may stand for: `8 p.m.` for 20, `70er` for 1970, `14 000` for 14."""
    decades = {form for one in numbers if one.endswith("0") for form in (f"19{one}", one[2:])}
    small = [int(one) for one in numbers if len(one) < 3] if has_hours else []
    hours = {str(hour + half) for hour in small for half in (12, -12)}
    return decades | hours | {one.removesuffix("000") for one in numbers}
