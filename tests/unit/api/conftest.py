"""A small network with random but reproducible weights."""

import pytest
import torch

from transept import ModelConfig, Transducer, Transformer
from transept.text.tokenizer import Tokenizer
from transept.text.training import train_tokenizer

WORDS = "one two three four five six seven eight nine ten the end is near so be it"
VOCABULARY = 300


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer([WORDS] * 50, vocab_size=VOCABULARY)


def network(seed: int, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    settings = {"n_layers": 2, "d_model": 16, "d_ff": 32, "n_heads": 2, **changes}
    return Transformer(ModelConfig(vocab_size=VOCABULARY, **settings))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def transducer(tokenizer: Tokenizer) -> Transducer:
    return Transducer([network(1)], tokenizer, tokenizer, max_source_length=40)
