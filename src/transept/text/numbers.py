"""Numbers, amounts of money, times and dates in the form of another language."""

import re
from typing import Final

POINT: Final = {"en": (",", "."), "de": (".", ","), "fr": ("\u202f", ",")}
"""The separator of thousands and the decimal separator of a language."""

_CURRENCY = re.compile(
    r"(?P<before>[$€£¥])?\s?(?P<number>\d[\d.,'’\u202f ]*?)\s?(?P<after>[$€£¥](?P<cents>\d\d)?)?"
)
# French has no decimal points, so `48.500` is large. `0.125` is written as in English.
_FRENCH_LARGE = re.compile(r"[-+±]?[1-9]\d{0,2}(?:[ \u202f.'’]\d{3})+(?:,\d+)?")
_FRENCH_SEPARATOR = re.compile(r"[ .'’]")
_HEURES = re.compile(r"(?P<hour>\d{1,2})\s?h(?:\s?(?P<minute>\d\d))?")
_CLOCKS: Final = frozenset({"en", "de", "fr"})
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?:(?:[:.]|(?P<heures>\s?h\s?))(?P<minute>\d\d))?(?P<rest>:\d\d)?\s?"
    r"(?:(?P<half>[ap])\.?m\.?|(?P<uhr>Uhr))?"
)

MONTHS: Final = {
    "en": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September",
        "October", "November", "December",
    ),
    "de": (
        "Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September",
        "Oktober", "November", "Dezember",
    ),
    "fr": (
        "janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre",
        "octobre", "novembre", "décembre",
    ),
}  # fmt: skip
ANY_MONTH: Final = "|".join(name for names in MONTHS.values() for name in names)
"""A pattern that matches the name of a month in any of these languages."""
_DAY_OF_MONTH = re.compile(
    rf"(?:(?P<month>{ANY_MONTH})\s)?(?:the\s)?(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th|er)?"
    rf"(?:(?:\sof)?\s(?P<after>{ANY_MONTH}))?(?:,?\s(?P<year>\d{{4}}))?"
)


def number(text: str, source: str, target: str) -> str:
    """A number with the separators of the target language.

    Example:
        >>> number("12,345.67", "en", "de"), number("1.234,5", "de", "en")
        ('12.345,67', '1,234.5')
        >>> number("12 345,6", "fr", "en"), number("48.500", "fr", "en")
        ('12,345.6', '48,500')
    """
    if source not in POINT or target not in POINT:
        return text
    (thousands, point), (new_thousands, new_point) = POINT[source], POINT[target]
    is_french = source == "fr" and _FRENCH_LARGE.fullmatch(text)
    figure = _FRENCH_SEPARATOR.sub(thousands, text) if is_french else text
    if not re.fullmatch(
        rf"[-+±]?\d+(?:{re.escape(thousands)}\d{{3}})*(?:{re.escape(point)}\d+)?", figure
    ):
        return text  # not a number in this language: a version, a score, a date
    whole, found, rest = figure.partition(point)
    return whole.replace(thousands, new_thousands) + (new_point + rest if found else "")


def amount(text: str, source: str, target: str) -> str:
    """An amount of money: English writes the sign before the number, German and French after it.

    Example:
        >>> amount("$12,345.67", "en", "de"), amount("1.234,56 €", "de", "en")
        ('12.345,67 $', '€1,234.56')
        >>> amount("1€20", "fr", "en")
        '€1.20'
    """
    found = _CURRENCY.fullmatch(text)
    if found is None or source not in POINT or target not in POINT:
        return text
    sign, cents = found["before"] or found["after"][:1], found["cents"]
    figure = found["number"] + (POINT[source][1] + cents if cents else "")
    value = number(figure, source, target)
    return f"{sign}{value}" if target == "en" else f"{value} {sign}"


def clock_time(text: str, source: str, target: str) -> str:
    """A time of day: `3:30 pm` is `15:30 Uhr` in German, and `15 h 30` in French.

    Example:
        >>> clock_time("3:30 pm", "en", "de"), clock_time("15.30 Uhr", "de", "en")
        ('15:30 Uhr', '15:30')
        >>> clock_time("3 pm", "en", "fr"), clock_time("15 h 30", "fr", "en")
        ('15 h', '15:30')
        >>> clock_time("9:00", "en", "fr"), clock_time("9:00", "en", "de")
        ('9 h', '9:00 Uhr')
        >>> clock_time("25:13", "en", "de")
        '25:13'
    """
    found = _CLOCK.fullmatch(text)
    if found is None or "en" not in (source, target) or not {source, target} <= _CLOCKS:
        return text
    hour, minute, rest = int(found["hour"]), found["minute"], found["rest"] or ""
    if hour > 24:
        return text  # the score of a match
    if target == "en":
        is_time = found["uhr"] or found["heures"]
        return f"{hour}:{minute or '00'}{rest}" if is_time else text
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "p" else 0)
    if target == "fr":
        whole = f"{hour} h {minute}" if minute and int(minute) else f"{hour} h"
        return f"{hour}:{minute}{rest}" if rest else whole
    return f"{hour} Uhr" if minute is None else f"{hour}:{minute}{rest} Uhr"


def whole_hour(text: str, source: str, target: str) -> str:
    """A French time without minutes. Empty for other languages.

    Example:
        >>> whole_hour("9 h", "fr", "en")
        '9:00'
    """
    return f"{int(text.rstrip('h'))}:00" if (source, target) == ("fr", "en") else ""


def duration(text: str, source: str, target: str) -> str:
    """A French duration of hours, or hours and minutes.

    Example:
        >>> duration("1 h 30", "fr", "en"), duration("2 h", "fr", "en")
        ('1 hour 30 minutes', '2 hours')
    """
    found = _HEURES.fullmatch(text)
    if found is None or target != "en":
        return clock_time(text, source, target)
    parts = ((int(found["hour"]), "hour"), (int(found["minute"] or 0), "minute"))
    return " ".join(f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n)


def day_of_month(text: str, source: str, target: str) -> str:
    """A date with the name of its month. Empty if the languages are not known.

    Example:
        >>> day_of_month("June 12, 2026", "en", "de"), day_of_month("1. Mai", "de", "fr")
        ('12. Juni 2026', '1er mai')
        >>> day_of_month("12 juin", "fr", "en")
        '12 June'
    """
    found = _DAY_OF_MONTH.fullmatch(text)
    name = found and (found["month"] or found["after"])
    if not found or name not in MONTHS.get(source, ()) or target not in MONTHS:
        return ""
    month = MONTHS[target][MONTHS[source].index(name)]
    day = found["day"] + {"de": ".", "fr": "er" if found["day"] == "1" else ""}.get(target, "")
    return " ".join(filter(None, (day, month, found["year"])))
