"""Decoding with a key/value cache compared with recomputing everything."""

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transept import ModelConfig, Transformer
from transept.decoding.beam import search
from transept.decoding.config import SamplingConfig, SearchConfig
from transept.decoding.greedy import sample
from transept.decoding.step import Constrained, Ensemble, ForcedPrefix
from transept.engines.native import cache, network, weights
from transept.engines.native.network import IncrementalDecoder
from transept.engines.native.weights import PACKINGS, Prepacked, prepare
from transept.model.transformer import Memory
from transept.runtime.products import Library
from transept.shapes import Tensor

VOCABULARY, EOS = 30, 1
LIBRARIES: list[Library] = ["MKL", "oneDNN"] if torch.backends.mkl.is_available() else ["oneDNN"]
SOURCES = [[5, 6, 7, 8, 9, 1], [10, 1], [11, 12, 13, 1], [14, 15, 16, 17, 18, 19, 20, 1]]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "positions": "learned", "max_positions": 80},
    {"decoder_window": 3, "encoder_window": 3},
    {"d_k": 5, "d_v": 9, "decoder_start": "token", "attention_bias": True, "output_bias": True},
    {"tied_embeddings": "none", "activation": "swish"},
    {"n_decoder_layers": 1},
]


def make(variant: dict[str, Any]) -> Transformer:
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=VOCABULARY, n_layers=2, d_model=16, d_ff=32, n_heads=2, **variant
    )
    model = Transformer(config).eval()
    with torch.no_grad():  # biases are initially zero, which would hide mistakes
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3)
    return model


def pad(sentences: list[list[int]]) -> Tensor:
    width = max(map(len, sentences))
    return torch.tensor([s + [0] * (width - len(s)) for s in sentences])


def encode(model: Transformer, sources: list[list[int]]) -> Memory:
    return network.encode(model, pad(sources))


class Uncached:
    """The same step without a cache: the whole decoder over every prefix, each time."""

    def __init__(self, model: Transformer, sources: list[list[int]]) -> None:
        self.model = model
        self.sources = sources
        self.prefixes: list[list[int]] = [[] for _ in sources]

    @torch.no_grad()
    def __call__(self, tokens: Tensor | None) -> Tensor:
        if tokens is not None:
            pairs = zip(self.prefixes, tokens.tolist(), strict=True)
            self.prefixes = [[*prefix, token] for prefix, token in pairs]
        # The position that predicts a token does not read it.
        targets = torch.tensor([[*prefix, EOS] for prefix in self.prefixes])
        logits: Tensor = self.model(pad(self.sources), targets)[:, -1]
        logits[:, 0] = -torch.inf
        return logits.log_softmax(-1)

    def select(self, rows: Tensor) -> None:
        self.sources = [self.sources[row] for row in rows.tolist()]
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]


@pytest.fixture(params=["other", "MKL"], ids=["fused attention", "attention by products"])
def attention(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "fastest_library", lambda: request.param)


@pytest.mark.usefixtures("attention")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_incremental_log_p_matches_full_decoder(variant: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("n_rows", [1, 3])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_precomputed_source_attention_matches_full_decoder(
    variant: dict[str, Any], n_rows: int
) -> None:
    """The keys and values of one short sentence are multiplied with the weights in advance."""
    model = make(variant)
    fast, slow = (
        IncrementalDecoder(model, encode(model, SOURCES[2:3])),
        Uncached(model, SOURCES[2:3]),
    )
    torch.testing.assert_close(fast(None), slow(None), atol=1e-5, rtol=1e-5)
    for token in range(5, 15):
        rows = torch.arange(n_rows) if token > 5 else torch.zeros(n_rows, dtype=torch.long)
        fast.select(rows)
        slow.select(rows)
        tokens = torch.arange(token, token + n_rows)
        torch.testing.assert_close(fast(tokens), slow(tokens), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_best_matches_topk_of_log_p(n_rows: int) -> None:
    model = make({"output_bias": True})
    whole, best = (IncrementalDecoder(model, encode(model, SOURCES[:n_rows])) for _ in range(2))
    tokens: Tensor | None = None
    for _ in range(5):
        expected = whole(tokens).topk(6, dim=1)
        log_p, token = best.best(tokens, 6)
        torch.testing.assert_close(log_p, expected.values)
        assert torch.equal(token, expected.indices)
        tokens = token[:, 0]
    assert best.best(tokens, 100)[0].shape == (n_rows, VOCABULARY)  # the whole vocabulary


@pytest.mark.parametrize("library", LIBRARIES)
def test_packed_matrices_give_same_log_p(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large matrices are packed. Here the limit is lowered, so that all are."""
    model = make(VARIANTS[3])
    packing = PACKINGS[library]._replace(least=1)
    monkeypatch.setattr(weights, "PACKINGS", {library: packing})
    monkeypatch.setattr(weights, "fastest_library", lambda: library)
    assert isinstance(prepare(model).decoder(2).projection, Prepacked)
    fast, slow = IncrementalDecoder(model, encode(model, SOURCES)), Uncached(model, SOURCES)
    tokens = torch.tensor([7, 8, 9, 10])
    torch.testing.assert_close(fast(None), slow(None), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(fast(tokens), slow(tokens), atol=1e-5, rtol=1e-5)


def test_prepared_weights_follow_changes() -> None:
    model = make({"positions": "learned", "max_positions": 80})
    memory = encode(model, SOURCES)
    before = IncrementalDecoder(model, memory)(None)
    assert prepare(model) is prepare(model)
    adam = torch.optim.Adam(model.parameters(), lr=0.1)
    model(pad(SOURCES), pad(SOURCES)).logsumexp(-1).sum().backward()
    adam.step()
    after = IncrementalDecoder(model, memory)(None)
    assert (after - before)[:, 1:].abs().max() > 0.1  # except padding, which is −∞
    truth = Transformer(model.config).eval()
    truth.load_state_dict(model.state_dict())
    torch.testing.assert_close(after, IncrementalDecoder(truth, memory)(None))
    model.load_state_dict(make({"positions": "learned", "max_positions": 80}).state_dict())
    torch.testing.assert_close(before, IncrementalDecoder(model, memory)(None))


def test_deleted_model_frees_prepared_weights() -> None:
    model = make({})
    there = weakref.ref(prepare(model))
    del model
    gc.collect()
    assert there() is None


@pytest.mark.parametrize("beam_size", [1, 4])
def test_cached_search_matches_uncached_search(beam_size: int) -> None:
    model = make({})
    config = SearchConfig(beam_size=beam_size, n_best=beam_size, max_length_extra=10)
    lengths = [config.max_length(len(source)) for source in SOURCES]
    fast = search(IncrementalDecoder(model, encode(model, SOURCES)), lengths, config, EOS)
    slow = search(Uncached(model, SOURCES), lengths, config, EOS)
    for ours, theirs in zip(fast, slow, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [o.score for o in ours] == pytest.approx([o.score for o in theirs], abs=1e-4)


@settings(max_examples=10)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 5), st.data())
def test_search_result_does_not_depend_on_batch_or_order(
    numbers: list[int], beam_size: int, data: st.DataObject
) -> None:
    model = make({})
    n_best = data.draw(st.integers(1, beam_size))
    config = SearchConfig(beam_size=beam_size, n_best=n_best, max_length_extra=8)
    whole = replace(config, n_best=beam_size)
    batch = [SOURCES[number] for number in numbers]
    lengths = [config.max_length(len(source)) for source in batch]
    together = search(IncrementalDecoder(model, encode(model, batch)), lengths, config, EOS)
    for source, length, found in zip(batch, lengths, together, strict=True):
        step = IncrementalDecoder(model, encode(model, [source]))
        (alone,) = search(step, [length], whole, EOS)
        assert [one.ids for one in alone[:n_best]] == [one.ids for one in found]
        scores = [one.score for one in alone[:n_best]]
        assert [one.score for one in found] == pytest.approx(scores, abs=1e-4)


def test_search_result_does_not_depend_on_batch() -> None:
    model = make({})
    config = SearchConfig(n_best=4)
    lengths = [config.max_length(len(source)) for source in SOURCES]
    together = search(IncrementalDecoder(model, encode(model, SOURCES)), lengths, config, EOS)
    for source, length, expected in zip(SOURCES, lengths, together, strict=True):
        step = IncrementalDecoder(model, encode(model, [source]))
        (alone,) = search(step, [length], config, EOS)
        assert [one.ids for one in alone] == [one.ids for one in expected]
        assert [o.score for o in alone] == pytest.approx([o.score for o in expected], abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_all_tensors_are_created_on_device_of_model(beam_size: int) -> None:
    """A tensor created without a device would be on another device, and operations would fail."""
    model = make({})
    memory = encode(model, SOURCES)
    config = SearchConfig(beam_size=beam_size, max_length_extra=30)
    lengths = [config.max_length(len(source)) for source in SOURCES]
    plain = search(IncrementalDecoder(model, memory), lengths, config, EOS)
    with torch.device("meta"):
        step = IncrementalDecoder(model, memory)
        found = search(step, lengths, config, EOS)
        both = Ensemble([IncrementalDecoder(model, memory), IncrementalDecoder(model, memory)])
        prefix = ForcedPrefix([[7]] * 4, VOCABULARY)
        forced = search(Constrained(both, prefix), lengths, config, EOS)
        drawing = SamplingConfig(top_p=0.9)
        sample(IncrementalDecoder(model, memory), lengths, range(4), drawing, EOS)
    assert found == plain
    assert all(best.ids[0] == 7 for best, *_ in forced)


@pytest.mark.usefixtures("attention")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("sources", [SOURCES, SOURCES[:1]], ids=["padded", "one"])
def test_prepared_encoder_matches_encoder(
    variant: dict[str, Any], sources: list[list[int]]
) -> None:
    model = make(variant)
    with torch.no_grad():
        expected = model.encode(pad(sources))
    found, real = encode(model, sources), expected.layout.segments > 0
    torch.testing.assert_close(
        found.layout.to_rows(found.states)[real], expected.layout.to_rows(expected.states)[real]
    )
