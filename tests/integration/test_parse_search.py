"""An untrained model parses under the constraint: every output is a tree."""

import random
from collections.abc import Sequence

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.decoding.beam import search
from transept.decoding.config import SearchConfig
from transept.decoding.step import Constrained, Hypothesis
from transept.engines.native.network import IncrementalDecoder
from transept.tasks.parsing.constraint import TreeConstraint
from transept.tasks.parsing.linearisation import delinearise, fault_of
from transept.tasks.parsing.repair import repair
from transept.tasks.parsing.tags import with_tags
from transept.tasks.parsing.vocabulary import vocabulary_of
from transept.text.tokenizer import EOS_ID, PAD_ID, Tokenizer
from transept.text.training import train_tokenizer
from transept.text.trees import Tree, escape, parse_tree

PAPER = SearchConfig(beam_size=21, length_penalty=0.3, max_length_extra=300)
VOCABULARY = vocabulary_of(["S", "NP", "VP", "PP", "SBAR", "ADVP"])
HOSTILE = [
    ["("],
    [")", "(", ")S", "(S", "XX"],
    ["🐈", "\u202e", "naïve", "10\u00a0000"],
    ["</s>", "<pad>", "(NP", ")NP", "-LRB-"],
    ["the", "cat"] * 100,
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["the cat sleeps on the mat ( ) ."] * 10, vocab_size=280)


def network(tokenizer: Tokenizer, seed: int) -> Transformer:
    torch.manual_seed(seed)
    config = ModelConfig(
        vocab_size=VOCABULARY.vocab_size,
        source_vocab_size=tokenizer.vocab_size,
        tied_embeddings="two-way",
        n_layers=1,
        d_model=16,
        d_ff=32,
        n_heads=2,
    )
    return Transformer(config).eval()


def outputs(
    model: Transformer,
    tokenizer: Tokenizer,
    sentences: Sequence[Sequence[str]],
    config: SearchConfig,
    *,
    constrained: bool = True,
) -> list[Hypothesis]:
    sources = [
        [*tokenizer.encode(" ".join(map(escape, sentence))), EOS_ID] for sentence in sentences
    ]
    width = max(map(len, sources))
    padded = torch.tensor([[*ids, *[PAD_ID] * (width - len(ids))] for ids in sources])
    lengths = [config.max_length(len(ids)) for ids in sources]
    with torch.inference_mode():
        decoder = IncrementalDecoder(model, model.encode(padded))
        constraint = TreeConstraint(VOCABULARY, sentences, lengths)
        step = Constrained(decoder, constraint) if constrained else decoder
        return [best for best, *_ in search(step, lengths, config, EOS_ID)]


def tree_of(output: Hypothesis, words: Sequence[str]) -> Tree:
    assert output.finished
    return with_tags(delinearise(VOCABULARY.symbols_of(output.ids), words))


def test_hostile_sentences_with_the_papers_search(tokenizer: Tokenizer) -> None:
    found = outputs(network(tokenizer, 0), tokenizer, HOSTILE[:4], PAPER)
    for output, words in zip(found, HOSTILE, strict=False):
        written = parse_tree(str(tree_of(output, words)))
        assert written.words == tuple(map(escape, words))


def test_a_long_sentence(tokenizer: Tokenizer) -> None:
    greedy = SearchConfig(beam_size=1, max_length_extra=10)
    (output,) = outputs(network(tokenizer, 1), tokenizer, HOSTILE[4:], greedy)
    assert len(tree_of(output, HOSTILE[4]).words) == 200


def test_without_the_constraint_there_is_something_to_repair(tokenizer: Tokenizer) -> None:
    sentences = [["the", "cat", "sleeps"]] * 3
    config = SearchConfig(beam_size=2, max_length_extra=10)
    found = outputs(network(tokenizer, 2), tokenizer, sentences, config, constrained=False)
    for output, words in zip(found, sentences, strict=True):
        symbols = VOCABULARY.symbols_of(output.ids)
        assert fault_of(symbols, len(words)) is not None
        assert repair(symbols, words).words == tuple(words)


@pytest.mark.slow
def test_a_thousand_sentences(tokenizer: Tokenizer) -> None:
    chance = random.Random(0)
    words = ["the", "cat", "(", ")", "🐈", "on", ",", ".", "(S", "-LRB-", "\u00a0"]
    config = SearchConfig(beam_size=4, length_penalty=0.3, max_length_extra=40)
    for seed in range(10):
        model = network(tokenizer, seed)
        sentences = [chance.choices(words, k=chance.randint(1, 30)) for _ in range(100)]
        for output, sentence in zip(
            outputs(model, tokenizer, sentences, config), sentences, strict=True
        ):
            tree_of(output, sentence)
