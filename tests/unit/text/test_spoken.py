"""Times of day in words."""

import re

import pytest

from transept.text.spoken import MAY_BE_SPOKEN, SPOKEN, spoken_time


def in_digits(text: str, source: str, target: str) -> str:
    """The text with its times in digits."""
    pattern = re.compile(SPOKEN[source], re.VERBOSE)
    found = pattern.sub(lambda time: spoken_time(time[0], source, target), text)
    assert found == text or MAY_BE_SPOKEN.search(text)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Half past three, please.", "3 h 30, please."),
        ("at a quarter to one or quarter past twelve", "at 12 h 45 or 12 h 15"),
        ("It's ten to five.", "It's 4 h 50."),
        ("Is it ten minutes past eight?", "Is it 8 h 10?"),
        ("until twenty-five to six", "until 5 h 35"),
        ("It is twenty five past one.", "It is 1 h 25."),
        ("open from ten to five", "open from ten to five"),
        ("She won ten to two.", "She won ten to two."),
        ("a quarter of six", "a quarter of six"),
        ("half past the hour", "half past the hour"),
    ],
)
def test_english_times_become_french(text: str, expected: str) -> None:
    assert in_digits(text, "en", "fr") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("à six heures moins le quart", "à 5:45"),
        ("Il est une heure moins dix.", "Il est 12:50."),
        ("vers 6 h moins vingt-cinq", "vers 5:35"),
        ("Vers 6h moins dix, 35 h moins dix", "Vers 5:50, 35 h moins dix"),
        ("À huit heures et demie, il dort.", "À 8:30, il dort."),
        ("Il est neuf heures dix.", "Il est 9:10."),
        ("Il est une heure dix.", "Il est 1:10."),
        ("Midi et demi ou minuit et quart.", "12:30 ou 0:15."),
        ("minuit moins cinq", "23:55"),
        ("attendre trois heures et demie", "attendre trois heures et demie"),
        ("à trois heures et demie de route", "à trois heures et demie de route"),
        ("Il est six heures.", "Il est six heures."),
        ("à six heures dix minutes", "à six heures dix minutes"),
        ("trois de moins le quart", "trois de moins le quart"),
    ],
)
def test_french_times_become_english(text: str, expected: str) -> None:
    assert in_digits(text, "fr", "en") == expected


def test_times_of_other_languages_are_left() -> None:
    assert spoken_time("half past three", "en", "de") == ""
