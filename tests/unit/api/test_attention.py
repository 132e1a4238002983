"""`Transducer.attend`: the weights of the network, token by token and word by word."""

import json

import pytest
import torch

from transept import Transducer
from transept.api.attention import KINDS, AttentionMap, Side, side_of
from transept.errors import DataError, TooLongError
from transept.model.attention import record_attention
from transept.text.tokenizer import EOS_ID, Tokenizer
from transept.text.training import train_tokenizer

SOURCE, TARGET = "one two three", "seven is near"


def test_attend_returns_the_weights_of_the_network(transducer: Transducer) -> None:
    attention = transducer.attend(SOURCE, TARGET)
    ids = [
        torch.tensor([[*transducer.source_tokenizer.encode(text), EOS_ID]])
        for text in (SOURCE, TARGET)
    ]
    with torch.no_grad(), record_attention(transducer.model) as weights:
        transducer.model(*ids)
    for layer in range(2):
        for found, name in (
            (attention.encoder, f"encoder.layers.{layer}.self_attention"),
            (attention.decoder, f"decoder.layers.{layer}.self_attention"),
            (attention.cross, f"decoder.layers.{layer}.source_attention"),
        ):
            torch.testing.assert_close(found.weights[layer], weights[name][0])


def test_attend_labels_queries_and_keys(transducer: Transducer) -> None:
    attention = transducer.attend(SOURCE, TARGET)
    pieces = (*transducer.target_tokenizer.pieces(TARGET), "</s>")
    assert attention.cross.queries.pieces == attention.decoder.queries.pieces == pieces
    assert attention.cross.keys == attention.encoder.keys == attention.encoder.queries
    # The decoder's input is its output of the step before.
    assert attention.decoder.keys.pieces == ("<s>", *pieces[:-1])
    assert attention.decoder.keys.words == ("<s>", "seven", "is", "near")
    assert not attention.decoder.weights.triu(1).any()
    for kind in KINDS:
        found = attention.of(kind)
        sizes = len(found.queries.pieces), len(found.keys.pieces)
        assert found.weights.shape == (2, 2, *sizes)


def test_attend_without_target_uses_the_models_translation(transducer: Transducer) -> None:
    attention = transducer.attend(f"  {SOURCE}\n")
    assert attention.target == transducer.translate(SOURCE, split=False, raw=True).text
    again = transducer.attend(SOURCE, "")
    torch.testing.assert_close(attention.encoder.weights, again.encoder.weights)
    assert again.cross.queries.pieces == ("</s>",)


def test_joined_sums_over_keys_and_takes_means_over_queries() -> None:
    queries = Side(("▁a", "b", "▁c"), ("ab", "c"), (0, 0, 1))
    keys = Side(("▁x", "▁y", "z", "</s>"), ("x", "yz", "</s>"), (0, 1, 1, 2))
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.5, 0.1, 0.1, 0.3], [0.0, 1.0, 0.0, 0.0]])
    joined = AttentionMap(queries, keys, weights[None, None]).joined()
    expected = torch.tensor([[0.3, 0.35, 0.35], [0.0, 1.0, 0.0]])
    torch.testing.assert_close(joined.weights[0, 0], expected)
    assert joined.queries.pieces == ("ab", "c")
    assert joined.keys.word_of == (0, 1, 2)


def test_joined_rows_still_sum_to_one(transducer: Transducer) -> None:
    attention = transducer.attend("(one, two) it's near.", TARGET)
    once = attention.joined()
    for kind in KINDS:
        sums = once.of(kind).weights.sum(dim=-1)
        torch.testing.assert_close(sums, torch.ones_like(sums))
        torch.testing.assert_close(once.joined().of(kind).weights, once.of(kind).weights)
    assert once.encoder.queries.words == attention.encoder.queries.words


@pytest.fixture(scope="module")
def tokenizer_with_punctuation() -> Tokenizer:
    return train_tokenizer(["it's (here), “so” it is. Größe ☺ - x"] * 50, vocab_size=290)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("it's here.", ["it's", "here", "."]),
        ("(so), “it”", ["(", "so", "),", "“", "it", "”"]),
        ("Größe x-x ☺ - 語", ["Größe", "x-x", "☺", "-", "語"]),
        ("a▁b", ["a▁b"]),
        ("", []),
    ],
)
def test_side_of_separates_punctuation_from_words(
    tokenizer_with_punctuation: Tokenizer, text: str, words: list[str]
) -> None:
    ids = [*tokenizer_with_punctuation.encode(text), EOS_ID]
    side = side_of(tokenizer_with_punctuation, ids)
    assert len(side.pieces) == len(side.word_of) == len(ids)
    assert sorted(set(side.word_of)) == list(range(len(side.words)))
    assert side.words == (*words, "</s>")


def test_attention_is_json_serializable(transducer: Transducer) -> None:
    attention = transducer.attend(SOURCE, TARGET)
    read = json.loads(json.dumps(attention.described()))
    assert (read["source"], read["target"]) == (SOURCE, TARGET)
    assert set(read["attention"]) == set(KINDS)
    for kind in KINDS:
        again = torch.tensor(read["attention"][kind]["weights"])
        torch.testing.assert_close(again, attention.of(kind).weights, atol=1e-6, rtol=0)
        assert read["attention"][kind]["keys"]["pieces"] == list(attention.of(kind).keys.pieces)


def test_attend_rejects_empty_and_long_sources(transducer: Transducer) -> None:
    with pytest.raises(DataError, match="the source has no words"):
        transducer.attend(" \n")
    with pytest.raises(TooLongError, match="the longest that the model was trained on has 40"):
        transducer.attend("one " * 50)
