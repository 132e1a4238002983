from typing import Literal

import pytest
from tests.unit.api.conftest import VOCABULARY

from transept import ModelConfig, Parser, Transformer
from transept.errors import ConfigError, TooLongError
from transept.tasks.parsing.vocabulary import vocabulary_of
from transept.text.tokenizer import Tokenizer

LONG = "one two three four five six seven eight nine ten"


def parser_of(tokenizer: Tokenizer, positions: Literal["sinusoidal", "learned"]) -> Parser:
    symbols = vocabulary_of(["S", "NP"])
    config = ModelConfig(
        vocab_size=symbols.vocab_size, source_vocab_size=VOCABULARY, tied_embeddings="two-way",
        n_layers=1, d_model=16, d_ff=32, n_heads=2, positions=positions, max_positions=12,
    )  # fmt: skip
    return Parser([Transformer(config)], tokenizer, symbols, max_source_length=6)


def test_too_long_error_suggests_a_sufficient_limit(
    tokenizer: Tokenizer,
) -> None:
    parser, n_tokens = parser_of(tokenizer, "sinusoidal"), len(tokenizer.encode(LONG)) + 1
    cure = f"the maximum is 6; max_source_length={n_tokens} parses it anyway"
    with pytest.raises(TooLongError, match=cure) as refused:
        parser.parse(LONG)
    parse = parser.parse(LONG, beam_size=1, max_source_length=refused.value.enough)
    assert parse.outputs[0].tree.words == tuple(LONG.split())


def test_learned_positions_are_a_hard_limit(tokenizer: Tokenizer) -> None:
    parser = parser_of(tokenizer, "learned")
    with pytest.raises(ConfigError, match="13 is more than the 12 positions"):
        parser.parse("one", max_source_length=13)
    with pytest.raises(TooLongError, match=r"text 2: .* the model has 12 positions; omit it"):
        parser.parse(["one", LONG])
