"""Word alignment from attention weights."""

import torch

from transept.api.networks import align, words_of_tokens
from transept.text.tokenizer import Tokenizer


def test_words_of_tokens_maps_each_token_to_its_word(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("one  two\u00a0zebra é")
    words = words_of_tokens(tokenizer.surfaces(ids))
    spelt: dict[int, bytes] = {}
    for numbers, surface in zip(words, tokenizer.surfaces(ids), strict=True):
        for number in numbers:
            spelt[number] = spelt.get(number, b"") + surface.strip(b" ")
    assert [spelt[number] for number in sorted(spelt)] == [
        word.encode() for word in ("one", "two", "zebra", "é")
    ]


def test_words_of_tokens_assigns_invalid_bytes_to_a_word() -> None:
    assert words_of_tokens([b" a", b"\xff", b"\xc3", b" ", b"b c"]) == [[0], [0], [0], [], [1, 2]]
    assert words_of_tokens([]) == []


def test_align_chooses_the_word_with_most_attention() -> None:
    # Source: one word of two tokens, one of one, the end symbol. Target: the same.
    weights = torch.tensor(
        [
            [0.20, 0.25, 0.40, 0.15],  # 0.45 in total for the first word
            [0.30, 0.20, 0.35, 0.15],
            [0.10, 0.10, 0.05, 0.75],  # the end symbol is not a word
            [0.00, 0.00, 0.00, 1.00],
        ]
    )
    assert align(weights, [[0], [0], [1]], [[0], [0], [1]]) == ((0, 0), (0, 1))
    assert align(weights[2:], [[0], [0], [1]], [[0]]) == ((0, 0),)
    assert align(weights, [[0], [1], [1]], [[0], [1], []]) == ((1, 0), (1, 1))


def test_align_discounts_words_that_all_attend_to() -> None:
    weights = torch.tensor([[0.5, 0.4, 0.1], [0.8, 0.1, 0.1], [0.6, 0.0, 0.4]])
    one_each = [[0], [1], [2]]
    assert align(weights, one_each, one_each) == ((0, 1), (1, 0), (2, 2))
    # The second word gets no attention.
    weights[0, 1] = weights[1, 1] = 0
    assert align(weights, one_each, one_each) == ((0, 0), (0, 1), (2, 2))


def test_words_of_tokens_excludes_punctuation() -> None:
    assert words_of_tokens([b"Oh", b",", b" (", b"no", b")!", b" -", b" \xe2\x80", b"\x9c"]) == [
        [0], [], [], [1], [], [2], [3], [3],
    ]  # fmt: skip


def test_align_without_words_is_empty() -> None:
    assert align(torch.ones(3, 3), [], [[0]]) == ()
    assert align(torch.ones(3, 3), [[0]], []) == ()
