"""Flaws of translations, with outputs that models have written."""

import pytest

from transept.apps.recipes.filtering import Flaw, find_flaw
from transept.text.spans import MASKS

NAME, OTHER = MASKS[0], MASKS[1]


@pytest.mark.parametrize(
    ("read", "written", "flaw"),
    [
        ("I live in Hamburg.", "Ich wohne in Hamburg.", None),
        (f"Mail {NAME} or {OTHER}.", f"Schreib {OTHER} oder {NAME}.", None),
        ("No, no, no, no, no!", "Nein, nein, nein, nein, nein!", None),
        ("Yes.", "", Flaw.EMPTY),
        ("", "", Flaw.EMPTY),
        ("The r\ufffdsum\ufffd is short.", "Der Lebenslauf ist kurz.", Flaw.ENCODING),
        ("It is a\0b.", "Es ist ab.", Flaw.ENCODING),
        ("He said “yes”.", "Er sagte \x84ja\x93.", Flaw.ENCODING),
        (f"Mail {NAME}.", "Schreib eine Mail.", Flaw.MASKS),
        (f"Mail {NAME}.", f"Schreib {NAME} {NAME}.", Flaw.MASKS),
        ("Mail me.", f"Schreib {NAME}.", Flaw.MASKS),
        ("I agree with the previous speaker, Mr President.", "Ja.", Flaw.RATIO),
        ("Oh!", "Das ist wirklich sehr schade.", Flaw.RATIO),
        (
            "The vote will take place tomorrow at noon.",
            "Und die Abstimmung, die Abstimmung, die Abstimmung, die Abstimmung "
            "findet morgen statt.",
            Flaw.LOOP,
        ),
        ("Good night, my dear friends.", "Gute Nachtachtachtachtachtachtachtachtacht!", Flaw.LOOP),
    ],
)
def test_first_flaw_of_a_pair_is_found(read: str, written: str, flaw: Flaw | None) -> None:
    assert find_flaw(read, written) == flaw


def test_unfinished_and_split_translations_are_faults() -> None:
    pair = ("I live in Hamburg.", "Ich wohne in Hamburg.")
    assert find_flaw(*pair, finished=False) == Flaw.UNFINISHED
    assert find_flaw(*pair, too_long=True) == Flaw.LONG
