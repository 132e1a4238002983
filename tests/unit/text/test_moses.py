"""Moses-style tokenization: sentences written for these tests, with tokenizer.perl's tokens."""

import pytest

from transept.text.moses import Language, tokenize


def cut(text: str, language: Language = "en") -> str:
    return " ".join(tokenize(text, language))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", "Hello , world !"),
        ('She said "no" (twice).', 'She said " no " ( twice ) .'),
        ("50% of $3.50; a/b: x_y", "50 % of $ 3.50 ; a / b : x _ y"),
        ("“Curly” quotes — and dashes", "“ Curly ” quotes — and dashes"),
        ("a well-known tick ` here", "a well-known tick ` here"),
        ("x² and ½ a cup, Ⅷ", "x ² and ½ a cup , Ⅷ"),
        ("see http://example.org/a?b=c", "see http : / / example.org / a ? b = c"),
    ],
)
def test_symbols_are_separate_tokens(text: str, tokens: str) -> None:
    assert cut(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("5,300 people, 1.000.000,00 euros", "5,300 people , 1.000.000,00 euros"),
        ("in 2017, 2018,and 2019,", "in 2017 , 2018 , and 2019 ,"),
        ("a,b,1", "a , b , 1"),
        ("one,,two", "one , , two"),
    ],
)
def test_commas_stay_inside_numbers(text: str, tokens: str) -> None:
    assert cut(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Well... perhaps..not", "Well ... perhaps .. not"),
        ("What...?", "What ... ?"),
        ("... and so on", "... and so on"),
        ("the end...", "the end ..."),
    ],
)
def test_dots_stay_together(text: str, tokens: str) -> None:
    assert cut(text) == tokens


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", "I don't; it's John's, isn't it?", "I don 't ; it 's John 's , isn 't it ?"),
        ("en", "the boys' toys of the 1990's", "the boys ' toys of the 1990 's"),
        ("en", "in the '90s he said 'yes' to 6'b", "in the ' 90s he said ' yes ' to 6'b"),
        ("en", "don’t", "don ’ t"),
        ("en", "'quoted' and 'quoted'", "'quoted ' and ' quoted'"),
        ("en", "He said: 'I see.'", "He said : ' I see . '"),
        ("fr", "L'homme qu'elle a vu aujourd'hui", "L' homme qu' elle a vu aujourd' hui"),
        ("fr", "l'an '68 d' ici", "l' an ' 68 d ' ici"),
        ("de", "So geht's, Hans' Rad", "So geht ' s , Hans ' Rad"),
        ("other", "l'acqua", "l ' acqua"),
    ],
)
def test_apostrophes_depend_on_the_language(language: Language, text: str, tokens: str) -> None:
    assert cut(text, language) == tokens


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", "Mr. Reed met Dr. A. Brook.", "Mr. Reed met Dr. A. Brook ."),
        ("en", "She left. He stayed.", "She left . He stayed ."),
        ("en", "The U.S. Army left the U.S.", "The U.S. Army left the U.S ."),
        ("en", "approx. ten, approx. Ten", "approx. ten , approx . Ten"),
        ("en", "No. 5 is alive. No. He is not.", "No. 5 is alive . No . He is not ."),
        ("en", "on Dec. 6 and in May. Then", "on Dec. 6 and in May . Then"),
        ("en", "about 3.14 or .5", "about 3.14 or .5"),
        ("en", "stop . now", "stop . now"),
        (
            "de",
            "Am 3. Oktober kam Prof. Lang z.B. nicht.",
            "Am 3. Oktober kam Prof. Lang z.B. nicht .",
        ),
        ("de", "Im Jahr 1990. Danach", "Im Jahr 1990 . Danach"),
        ("fr", "M. Petit et MM. Grand, art. 5", "M. Petit et MM. Grand , art. 5"),
        ("other", "Mr. Reed", "Mr. Reed"),
    ],
)
def test_full_stops_stay_with_abbreviations(language: Language, text: str, tokens: str) -> None:
    assert cut(text, language) == tokens


def test_hyphens_are_not_split() -> None:
    assert cut("a state-of-the-art 3-D x-") == "a state-of-the-art 3-D x-"


def test_space_and_control_characters_are_dropped() -> None:
    assert tokenize("  a\u00a0b\tc\x01d \u2003 e\r") == ["a", "b", "cd", "e"]
    assert tokenize("") == tokenize(" \t ") == []


def test_nothing_is_escaped() -> None:
    assert cut("R&D <b> [x] | y") == "R & D < b > [ x ] | y"
