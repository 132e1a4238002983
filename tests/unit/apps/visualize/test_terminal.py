"""Attention drawn with block characters."""

import numpy as np
import pytest
import torch

from transept import ModelConfig, Transformer
from transept.api.transducer import Transducer
from transept.apps.visualize.terminal import WordAttention, attend, draw_attention
from transept.text.training import train_tokenizer

TEXT = ["The dog sleeps, I think.", "Der Hund schläft, denke ich."]


def test_shades_are_aligned_with_source_words() -> None:
    weights = np.array([[0.95, 0.05, 0.0], [0.1, 0.65, 0.25], [0.0, 0.15, 0.45]])
    attention = WordAttention(["I", "know", "Anna"], ["Ich", "kenne", "Anna"], weights)
    assert draw_attention(attention) == [
        "       I know Anna",
        "  Ich  █",
        "kenne    ▓▓▓▓ ░░░░",
        " Anna         ▒▒▒▒",
    ]


def test_long_source_continues_below() -> None:
    source = ["word"] * 40
    attention = WordAttention(source, ["eins", "zwei"], np.full((2, 40), 0.3))
    lines = draw_attention(attention, width=80)
    assert max(map(len, lines)) <= 80
    assert sum(line.split().count("word") for line in lines) == 40
    assert sum(line.count("░░░░") for line in lines) == 2 * 40
    assert lines.count("") == len(lines) // 4


def test_word_wider_than_the_picture_has_its_own_band() -> None:
    attention = WordAttention(["a", "b" * 90, "c"], ["x"], np.array([[0.5, 0.5, 0.0]]))
    heads = draw_attention(attention, width=40)[::3]
    assert [head.split() for head in heads] == [["a"], ["b" * 90], ["c"]]


@pytest.fixture(scope="module")
def transducer() -> Transducer:
    torch.manual_seed(0)
    tokenizer = train_tokenizer(TEXT * 20, vocab_size=290)
    config = ModelConfig(vocab_size=290, n_layers=2, d_model=16, d_ff=32, n_heads=2)
    return Transducer([Transformer(config)], tokenizer, tokenizer)


def test_words_are_merged_from_subwords(transducer: Transducer) -> None:
    source, target = TEXT
    assert len(transducer.source_tokenizer.encode(source)) > 8
    attention = attend(transducer, source, target)
    assert attention.source == ["The", "dog", "sleeps", ",", "I", "think", "."]
    assert attention.target == ["Der", "Hund", "schläft", ",", "denke", "ich", "."]
    assert attention.weights.shape == (7, 7)
    sums = attention.weights.sum(axis=1)
    assert ((sums > 0.5) & (sums < 1.0)).all()  # the rest is the end of the sentence


def test_attention_is_that_of_the_last_layer(transducer: Transducer) -> None:
    """With one source word, its weight is 1 minus that of the end of the sentence."""
    attention = attend(transducer, "dog", "Hund schläft")
    assert attention.weights.shape == (2, 1)
    last = dict(transducer.model.named_parameters())[
        "decoder.layers.1.source_attention.w_qkv.weight"
    ]
    with torch.no_grad():
        last.zero_()  # every place is then looked at alike
    n_pieces = len(transducer.source_tokenizer.encode("dog"))
    again = attend(transducer, "dog", "Hund schläft")
    assert again.weights == pytest.approx(n_pieces / (n_pieces + 1))
