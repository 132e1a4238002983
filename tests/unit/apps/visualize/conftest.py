"""The attention of a small model with random weights, and of texts that need escaping."""

import pytest
from tests.unit.api.conftest import WORDS, network

from transept import Transducer
from transept.api.attention import Attention
from transept.text.training import train_tokenizer

NASTY = '</script><!-- & "two" \x07 {{data}}'


@pytest.fixture(scope="session")
def looking() -> Transducer:
    tokenizer = train_tokenizer([WORDS] * 50, vocab_size=300)
    return Transducer([network(3, n_layers=3, n_heads=4)], tokenizer, tokenizer)


@pytest.fixture(scope="session")
def attention(looking: Transducer) -> Attention:
    return looking.attend("one two three, the end is near.", "four five six is it.")


@pytest.fixture(scope="session")
def nasty(looking: Transducer) -> Attention:
    return looking.attend(NASTY, NASTY)
