"""Numbers that a translation has lost."""

import pytest

from transept.text.figures import has_figures, loses_figures
from transept.text.protection import Masked

EN_DE, DE_EN, EN_FR = ("en", "de"), ("de", "en"), ("en", "fr")


@pytest.mark.parametrize(
    ("text", "output", "languages"),
    [
        ("It costs $100.", "Es kostet 00 Dollar.", EN_DE),
        ("330 Millionen Dollar", "$30 million", DE_EN),
        ("the B33", "die B333", EN_DE),
        ("between August 1 and September 10", "zwischen dem 1. und 10. September", EN_DE),
        ("by 53 votes", "nach einem Berg", EN_DE),
        ("In 2011 180 bills", "2011 Gesetze", EN_DE),
        ("at 12 and at 3 p.m.", "à midi et à trois heures", EN_FR),
    ],
)
def test_lost_number_or_month_is_found(text: str, output: str, languages: tuple[str, str]) -> None:
    assert loses_figures(text, output, languages)


@pytest.mark.parametrize(
    ("text", "output", "languages"),
    [
        ("the 9th of 1000", "der neunte von 1.000", EN_DE),
        ("in the 1970s", "in den 70er Jahren", EN_DE),
        ("in den 60er Jahren", "in the 1960s", DE_EN),
        ("um 20 Uhr", "at 8 p.m.", DE_EN),
        ("at 3:30 pm", "à 15 h 30", EN_FR),
        ("14 thousand", "14 000", EN_DE),
        ("2011 180 Gesetze", "In 2011, 180 bills", DE_EN),
        ("85 Mitglieder", "Eighty-five members", DE_EN),
        ("3 cats, 05", "drei Katzen, 5", EN_DE),
        ("May 5 and what may be", "le 5 mai et ce qui est possible", EN_FR),
        ("the 2 of us", "nous deux", EN_FR),
        ("It rains.", "Es regnet.", EN_DE),
        ("100", "", ("en", "nl")),
    ],
)
def test_number_in_another_form_is_not_lost(
    text: str, output: str, languages: tuple[str, str]
) -> None:
    assert not loses_figures(text, output, languages)


def test_masked_numbers_are_not_compared() -> None:
    masked = Masked.of("It costs $1,234.50.", languages=EN_DE)
    assert not masked.has_figures
    assert masked.keeps_figures("Es kostet viel.")
    assert has_figures("a 1", EN_DE)
    assert not has_figures("a 1", ("", ""))


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("on the 12th of June 2004", {"the 12th of June 2004": "12. Juni 2004"}),
        ("May 5, 2010, and May is 3", {"May 5, 2010": "5. Mai 2010", "3": "3"}),
        ("the November 17-21 event", {"17": "17", "21": "21"}),
        ("50ft and 2g", {"50": "50", "2": "2"}),
        ("a 3.5 b", {"3.5": "3,5"}),
        ("it may be", {}),
    ],
)
def test_all_figures_are_masked_if_asked(text: str, spans: dict[str, str]) -> None:
    masked = Masked.of(text, languages=EN_DE, all_figures=True)
    assert {span.source: span.target for span in masked.spans} == spans
    plain = {"3.5"} & spans.keys()
    assert {span.source for span in Masked.of(text, languages=EN_DE).spans} == plain
