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
def test_escape_is_reversible(text: str, escaped: str) -> None:
    assert escape(text) == escaped
    assert unescape(escaped) == text


def test_escape_character_without_effect_is_kept() -> None:
    assert unescape(f"a{ESCAPE}b{ESCAPE}") == f"a{ESCAPE}b{ESCAPE}"
