"""Decoding with a cache against computing everything anew."""

from typing import Any

import pytest
import torch

from transept import ModelConfig, Transformer
from transept.decoding.beam import beam_search, search
from transept.decoding.config import SearchConfig
from transept.model.incremental import IncrementalDecoder
from transept.model.transformer import Memory
from transept.shapes import Tensor

VOCABULARY, EOS = 30, 1
SOURCES = [[5, 6, 7, 8, 9, 1], [10, 1], [11, 12, 13, 1], [14, 15, 16, 17, 18, 19, 20, 1]]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "positions": "learned", "max_positions": 80},
    {"decoder_window": 3, "encoder_window": 3},
    {"d_k": 5, "d_v": 9, "decoder_start": "token", "attention_bias": True, "output_bias": True},
    {"tied_embeddings": "none", "activation": "swish"},
]


def make(variant: dict[str, Any]) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=VOCABULARY, n_layers=2, d_model=16, d_ff=32, n_heads=2, **variant
    )
    model = Transformer(config).eval()
    with torch.no_grad():  # Biases start at zero, where they would hide mistakes.
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3)
    return model


def pad(sentences: list[list[int]]) -> Tensor:
    width = max(map(len, sentences))
    return torch.tensor([s + [0] * (width - len(s)) for s in sentences])


def encode(model: Transformer, sources: list[list[int]]) -> Memory:
    with torch.no_grad():
        return model.encode(pad(sources))


class Uncached:
    """The same step, slow and obvious: the whole decoder over every prefix, each time."""

    def __init__(self, model: Transformer, sources: list[list[int]]) -> None:
        self.model = model
        self.sources = sources
        self.prefixes: list[list[int]] = [[] for _ in sources]

    @torch.no_grad()
    def __call__(self, tokens: Tensor | None) -> Tensor:
        if tokens is not None:
            pairs = zip(self.prefixes, tokens.tolist(), strict=True)
            self.prefixes = [[*prefix, token] for prefix, token in pairs]
        # The last token is not read by the position that predicts it.
        targets = torch.tensor([[*prefix, EOS] for prefix in self.prefixes])
        logits: Tensor = self.model(pad(self.sources), targets)[:, -1]
        logits[:, 0] = -torch.inf
        return logits.log_softmax(-1)

    def select(self, rows: Tensor) -> None:
        self.sources = [self.sources[row] for row in rows.tolist()]
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_log_probabilities_are_those_of_the_whole_decoder(variant: dict[str, Any]) -> None:
    model = make(variant)
    fast, slow = IncrementalDecoder(model, encode(model, SOURCES)), Uncached(model, SOURCES)
    torch.testing.assert_close(fast(None), slow(None), atol=1e-5, rtol=1e-5)
    rows = torch.arange(4).repeat_interleave(3)
    generator = torch.Generator().manual_seed(1)
    for length in range(40):
        fast.select(rows)
        slow.select(rows)
        tokens = torch.randint(4, VOCABULARY, (len(rows),), generator=generator)
        torch.testing.assert_close(fast(tokens), slow(tokens), atol=2e-5, rtol=1e-4)
        n = len(rows) // 3
        if length in (5, 9):
            n -= 1  # a sentence is done
        kept = torch.randperm(len(rows) // 3, generator=generator)[:n].sort().values
        shuffle = torch.randint(0, 3, (n, 3), generator=generator)
        rows = (kept[:, None] * 3 + shuffle).flatten()


@pytest.mark.parametrize("beam_size", [1, 4])
def test_cached_search_is_uncached_search(beam_size: int) -> None:
    model = make({})
    config = SearchConfig(beam_size=beam_size, n_best=beam_size, max_length_extra=10)
    lengths = [config.max_length(len(source)) for source in SOURCES]
    fast = search(IncrementalDecoder(model, encode(model, SOURCES)), lengths, config, EOS)
    slow = search(Uncached(model, SOURCES), lengths, config, EOS)
    for ours, theirs in zip(fast, slow, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [o.score for o in ours] == pytest.approx([o.score for o in theirs], abs=1e-4)


def test_a_result_does_not_depend_on_the_batch() -> None:
    model = make({})
    config = SearchConfig(n_best=4)
    lengths = [config.max_length(len(source)) for source in SOURCES]
    together = beam_search(IncrementalDecoder(model, encode(model, SOURCES)), lengths, config, EOS)
    for source, length, expected in zip(SOURCES, lengths, together, strict=True):
        step = IncrementalDecoder(model, encode(model, [source]))
        (alone,) = beam_search(step, [length], config, EOS)
        assert [one.ids for one in alone] == [one.ids for one in expected]
        assert [o.score for o in alone] == pytest.approx([o.score for o in expected], abs=1e-4)
