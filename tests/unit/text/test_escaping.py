import pytest

from transept.text.tokenizer import ESCAPE, MARK, escape, unescape


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("plain text", "plain text"),
        ("▁", MARK),
        (MARK, ESCAPE + MARK),
        (ESCAPE, ESCAPE + ESCAPE),
        (ESCAPE + "▁", ESCAPE + ESCAPE + MARK),
        ("a▁b", f"a{MARK}b"),
    ],
)
def test_escape_and_back(text: str, escaped: str) -> None:
    assert escape(text) == escaped
    assert unescape(escaped) == text


def test_an_escape_of_nothing_stays() -> None:
    assert unescape(f"a{ESCAPE}b{ESCAPE}") == f"a{ESCAPE}b{ESCAPE}"
