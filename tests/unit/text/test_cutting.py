"""Where sentences that are too long are split."""

import pytest

from transept.text.cutting import cut
from transept.text.sentences import Piece
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer

TEXT = "the old man went home; the dog, who was tired, slept near the door"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([TEXT] * 100, vocab_size=300)


def pieces_of(text: str, tokenizer: Tokenizer, share: float) -> list[Piece]:
    return cut(text, tokenizer, int(share * len(tokenizer.encode(text))))


def test_short_sentence_is_not_split(tokenizer: Tokenizer) -> None:
    assert pieces_of(TEXT, tokenizer, 1) == [Piece(TEXT, "")]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one two; three, four five six", "one two;"),
        ("one two, three four five six", "one two,"),
        ("one two three – four five, six seven", "one two three"),
        ("one two (three four) five six", "one two (three four)"),
        ("one two three four (five six)", "one two three four"),
        ("one two three four five", "one two three"),
        ("one two three  \t four five six", "one two three"),
        ("一二三四五，六七八", "一二三四五，"),
        ("aaaaaaaaaa", "aaaa"),
    ],
)
def test_sentence_is_split_at_the_best_position(
    tokenizer: Tokenizer, text: str, first: str
) -> None:
    pieces = pieces_of(text, tokenizer, 0.75)
    assert pieces[0].text == first
    assert "".join(map("".join, pieces)) == text


def test_characters_are_not_split(tokenizer: Tokenizer) -> None:
    pieces = cut("😀" * 20, tokenizer, 8)
    assert {piece.text for piece in pieces} == {"😀"}
