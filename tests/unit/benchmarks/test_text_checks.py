"""`benchmarks/text_checks.py`: each check accepts a good translation and rejects a bad one."""

import importlib
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def checks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("text_checks")


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("It rains.", "."),
        ("It rains", ""),
        ("He said “it rains.”", "."),
        ("(It rains.)", "."),
        ("I passed! 🥳", "!"),
        ("Happy birthday 🎉👍🏽", ""),
        ("What?!", "?"),
        ("Loading...", "…"),
        ("Loading …", "…"),
        ("You need:", ":"),
        ("And then –", "–"),
        ("See v1.2.", "."),
        ("See {name}", ""),
        ("https://example.com/a/", ""),
        ("", ""),
    ],
)
def test_final_mark_is_the_kind_of_the_last_punctuation(checks: Any, text: str, mark: str) -> None:
    assert checks.final_mark(text) == mark


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("The total is $12,345.67.", "Der Gesamtbetrag ist 12.345,67 Dollar."),
        ("The total is $12,345.67.", "Der Gesamtbetrag ist 12345.67 Dollar."),
        ("About 84,500 people came.", "Etwa 84 500 Menschen kamen."),
        ("I bought 3 apples and 12 eggs.", "Ich kaufte drei Äpfel und zwölf Eier."),
        ("It ends on 2026-11-03.", "Es endet am 3. November 2026."),
        ("It opens at 9:00.", "Es öffnet um 9 Uhr."),
        ("It takes 1.5 hours.", "Es dauert 1,50 Stunden."),
    ],
)
def test_numbers_in_either_format_or_words_are_not_lost(
    checks: Any, source: str, output: str
) -> None:
    assert checks.lost_numbers(source, output, "en-de") == []


@pytest.mark.parametrize(
    ("source", "output", "lost"),
    [
        ("Der Betrag ist 1.234,56 €.", "The amount is €1,234.65.", ["1234.56"]),
        ("Der Betrag ist 1.234,56 €.", "The amount is €1,234.", ["1234.56"]),
        ("Er hat 20 Bücher und 20 Hefte.", "He has 20 books and notebooks.", ["20"]),
        ("Ihr Code ist 730915.", "Your code is 73095.", ["730915"]),
        ("Es kostet 3 Euro.", "It costs four euros.", ["3"]),
        ("Es sind 15 Leute.", "There are fifteen people.", ["15"]),
        ("Am 17.11.2026 endet es.", "It ends on 17.1.2026.", ["11"]),
    ],
)
def test_changed_number_is_lost(checks: Any, source: str, output: str, lost: list[str]) -> None:
    assert [str(value) for value in checks.lost_numbers(source, output, "de-en")] == lost


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("The total is 1,234.5 tons.", "Le total est de 1 234,5 tonnes."),
        ("It costs $12,345.67.", "Il coûte 12\u202f345,67 $."),
        ("It costs $12,345.67.", "Il coûte 12\u00a0345.67 dollars."),
        ("It is 1 of 2.", "C'est le premier de deux."),
        ("The 3 doors and 9 keys", "La troisième porte et neuf clés"),
        ("It ends on 8/12/2026.", "Il finit le 8 décembre 2026."),
        ("It ends on 2026-08-01.", "Il finit le 1er août 2026."),
        ("It opens at 9:00.", "Il ouvre à neuf heures."),
    ],
)
def test_french_numbers_words_and_months_are_not_lost(
    checks: Any, source: str, output: str
) -> None:
    assert checks.lost_numbers(source, output, "en-fr") == []


@pytest.mark.parametrize(
    ("source", "output", "lost"),
    [
        ("Le total est de 1 234,5 tonnes.", "The total is 1,234.5 tons.", []),
        ("Le total est de 1 234,5 tonnes.", "The total is 1,234 tons.", ["1234.5"]),
        ("Il a 12\u202f345\u202f678 lignes.", "It has 12,345 lines.", ["12345678"]),
        ("Le 3 mai, 2,5 %", "On May 3, 25%", ["2.5"]),
        ("En 2010 300 personnes", "In 2010, 300 people", []),
    ],
)
def test_french_number_is_read_with_its_spaces(
    checks: Any, source: str, output: str, lost: list[str]
) -> None:
    assert [str(value) for value in checks.lost_numbers(source, output, "fr-en")] == lost


@pytest.mark.parametrize("text", ['A "b" c', "„A“ „b“", "“A”", "«A» »b«", "don't", ""])
def test_pairs_of_quotes_are_balanced(checks: Any, text: str) -> None:
    assert not checks.has_unbalanced_quotes(text)


@pytest.mark.parametrize("text", ['A "b', "„A", '„A"', "«A", "«The Long Way Home° war"])
def test_single_quote_is_unbalanced(checks: Any, text: str) -> None:
    assert checks.has_unbalanced_quotes(text)


def test_apostrophe_is_not_a_quotation_mark(checks: Any) -> None:
    assert checks.all_quotes("I don't know Anna’s brother.") == 0
    assert checks.all_quotes("He said ‘yes’ and “no”.") == 4
    assert checks.all_quotes("Er sagte ‚ja‘ und »nein«.") == 4
    assert checks.all_quotes("Le sens d'« oui » et l’«eau»") == 4


def test_brackets_are_counted_by_kind(checks: Any) -> None:
    assert checks.brackets("a (b) [c") == {"(": 1, ")": 1, "[": 1}


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("a chair and a table", "ein Tisch, ein Tisch, ein Tisch"),
        ("The shop was opened.", "Das Geschäft geöffnetetetetetetete."),
        (
            "A long sentence about a house.",
            "Das Haus ist alt. Das Haus ist neu. Das Haus ist groß. Das Haus ist klein.",
        ),
        ("very very good", "sehr sehr sehr sehr gut"),
    ],
)
def test_repetition_that_the_source_lacks_is_a_loop(checks: Any, source: str, output: str) -> None:
    assert checks.has_loop(source, output)


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("no no no no", "nein nein nein"),
        ("hahahahahaha", "hahahahahahaha"),
        ("It is 3.0.0.0.", "Es ist 3.0.0.0."),
        (
            "from $5 million to $6 million, $7 million or $8 million",
            "de 5 millions de dollars à 6 millions de dollars, à 7 millions de dollars ou "
            "à 8 millions de dollars",
        ),
        ("He thinks that it is so.", "Er denkt, dass es so ist, und dass es so bleibt."),
        (
            "dass er geht, dass er bleibt, dass er lacht, dass er weint",
            "that he would go, that he would stay, that he would laugh, that he would cry",
        ),
    ],
)
def test_repetition_of_the_source_is_not_a_loop(checks: Any, source: str, output: str) -> None:
    assert not checks.has_loop(source, output)


def test_share_of_capitals_counts_letters_with_two_cases(checks: Any) -> None:
    assert checks.share_of_capitals("DO NOT ENTER 12!") == 1.0
    assert checks.share_of_capitals("STRAßE") == 1.0
    assert checks.share_of_capitals("Do not") == pytest.approx(1 / 5)
    assert checks.share_of_capitals("42 注意") == 0.0
