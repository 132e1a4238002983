"""Glossaries: reading, matching, and terms that a translation lacks."""

from pathlib import Path

import pytest

from transept import Glossary
from transept.errors import DataError
from transept.text.glossary import missing

TERMS = {"bank": "Geldhaus", "bank account": "Konto", "New York": None, "US": "USA", "may": "darf"}


def written(glossary: Glossary, sentence: str) -> list[str]:
    return [spellings[0] for spellings in glossary.required(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The bank is near.", ["Geldhaus"]),
        ("Bank, BANK (bank) bank's", ["Geldhaus"] * 4),
        ("banks embank river-bank bank-note bank_1", []),
        ("My bank \t account", ["Konto"]),
        ("Her bank accounts", ["Geldhaus"]),
        ("bank account bank", ["Konto", "Geldhaus"]),
        ("In New York, not new york", ["New York"]),
        ("Give US to us", ["USA"]),
        ("", []),
    ],
)
def test_longest_whole_words_match(sentence: str, expected: list[str]) -> None:
    assert written(Glossary.of(TERMS), sentence) == expected


def test_exact_spelling_takes_precedence_over_other_case() -> None:
    glossary = Glossary.of({"may": "darf", "May": "Mai"})
    assert written(glossary, "May I come in May, or may I not? MAY") == [
        "Mai",
        "Mai",
        "darf",
        "darf",
    ]


def test_kept_word_is_written_as_in_sentence() -> None:
    glossary = Glossary.of({"tea": None}, keep=["C++", "node.js"])
    assert glossary.required("Tea, C++ and Node.js!") == (("Tea",), ("C++",), ("Node.js",))


def test_lower_case_translation_has_capital_for_start_of_output() -> None:
    glossary = Glossary.of({"often": "oft", "house": "Haus"})
    assert glossary.required("Often a house") == (("oft", "Oft"), ("Haus",))


def test_file_has_terms_kept_words_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("\ufeff# a comment\tx\n\nbank\t Geldhaus \ntranσept\nbank\tGeldhaus\n", "utf-8")
    glossary = Glossary.read(path)
    assert glossary == Glossary.of({"bank": "Geldhaus"}, keep=["tranσept"])
    assert Glossary.of(str(path)) == Glossary.of(path) == Glossary.of(glossary) == glossary


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("a\tb\nbank\tUfer\nbank\tHaus\n", "line 3: 'bank' is to become 'Haus', but 'Ufer' in "),
        ("a\tb\tc\n", "terms.tsv, line 1: has 3 columns; write a term, a tab and its translation"),
        ("\n\tb\n", "terms.tsv, line 2: a term is empty"),
        ("a\t\n", "terms.tsv, line 1: a term is empty"),
    ],
)  # fmt: skip
def test_invalid_line_is_rejected_with_its_number(content: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as raised:
        Glossary.read(path)
    assert error in str(raised.value)


@pytest.mark.parametrize("given", [5, ["bank"], {"bank": 5}, {"": "x"}, {3: "x"}])
def test_invalid_glossary_is_rejected(given: object) -> None:
    with pytest.raises(DataError):
        Glossary.of(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", ["word", [5], [""]])
def test_invalid_words_to_keep_are_rejected(keep: object) -> None:
    with pytest.raises(DataError):
        Glossary.of(None, keep)  # type: ignore[arg-type]


def test_kept_word_with_other_translation_is_rejected() -> None:
    with pytest.raises(DataError, match="word 1 to keep: 'bank' is to become 'bank'"):
        Glossary.of({"bank": "Geldhaus"}, keep=["bank"])


def test_missing_terms_are_counted_as_whole_words() -> None:
    required = [("Bank",), ("Bank",), ("oft", "Oft")]
    assert missing("Oft eine Bank und (Bank).", required) == ()
    assert missing("Eine Bank, oft Banken.", required) == ("Bank",)
    assert missing("Bankenoft", required) == ("Bank", "Bank", "oft")
