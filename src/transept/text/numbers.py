"""Numbers, amounts of money and times in the form of another language, with the same value."""

import re
from typing import Final

POINT: Final = {"en": (",", "."), "de": (".", ","), "fr": ("\u202f", ",")}
"""The separator of thousands and the decimal separator of a language."""

_CURRENCY = re.compile(r"(?P<before>[$€£¥])?\s?(?P<number>[\d.,'’\u202f]+)\s?(?P<after>[$€£¥])?")
_CLOCK = re.compile(
    r"(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?(?P<rest>:\d\d)?\s?"
    r"(?:(?P<half>[ap])\.?m\.?|(?P<uhr>Uhr))?"
)


def number(text: str, source: str, target: str) -> str:
    """A number with the separators of the target language.

    Example:
        >>> number("12,345.67", "en", "de"), number("1.234,5", "de", "en")
        ('12.345,67', '1,234.5')
    """
    if source not in POINT or target not in POINT:
        return text
    (thousands, point), (new_thousands, new_point) = POINT[source], POINT[target]
    if not re.fullmatch(
        rf"[-+±]?\d+(?:{re.escape(thousands)}\d{{3}})*(?:{re.escape(point)}\d+)?", text
    ):
        return text  # not a number in this language: a version, a score, a date
    whole, found, rest = text.partition(point)
    return whole.replace(thousands, new_thousands) + (new_point + rest if found else "")


def amount(text: str, source: str, target: str) -> str:
    """An amount of money: English writes the sign before the number, German and French after it.

    Example:
        >>> amount("$12,345.67", "en", "de"), amount("1.234,56 €", "de", "en")
        ('12.345,67 $', '€1,234.56')
    """
    found = _CURRENCY.fullmatch(text)
    if found is None or source not in POINT or target not in POINT:
        return text
    sign = found["before"] or found["after"]
    value = number(found["number"], source, target)
    return f"{sign}{value}" if target == "en" else f"{value} {sign}"


def clock_time(text: str, source: str, target: str) -> str:
    """A time of day: `3:30 pm` is `15:30 Uhr` in German.

    Example:
        >>> clock_time("3:30 pm", "en", "de"), clock_time("15.30 Uhr", "de", "en")
        ('15:30 Uhr', '15:30')
        >>> clock_time("25:13", "en", "de")
        '25:13'
    """
    found = _CLOCK.fullmatch(text)
    if found is None or {source, target} != {"en", "de"}:
        return text
    hour, minute = int(found["hour"]), found["minute"] or "00"
    if hour > 24:
        return text  # the score of a match
    if target == "en":
        return f"{hour}:{minute}{found['rest'] or ''}" if found["uhr"] else text
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] == "p" else 0)
    whole = found["minute"] is None
    return f"{hour} Uhr" if whole else f"{hour}:{minute}{found['rest'] or ''} Uhr"
