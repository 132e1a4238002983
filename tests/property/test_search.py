"""Search compared with brute force, with a model small enough to list every output."""

import itertools
from dataclasses import dataclass, field
from functools import lru_cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transept.decoding.beam import search
from transept.decoding.config import SamplingConfig, SearchConfig
from transept.decoding.greedy import greedy_search, sample, sample_seed, top_k_top_p
from transept.decoding.step import Constrained, Ensemble, ForcedPrefix, length_penalty
from transept.shapes import Tensor

EOS = 1


@lru_cache(maxsize=100_000)
def log_p_of(seed: int, prefix: tuple[int, ...], vocab_size: int) -> Tensor:
    generator = torch.Generator().manual_seed(hash((seed, prefix)) % 2**31)
    logits = 2 * torch.randn(vocab_size, generator=generator)
    logits[0] = -torch.inf
    return logits.log_softmax(0)


@dataclass
class Table:
    """A random distribution over next tokens for every prefix, created on first use."""

    seeds: list[int]
    vocab_size: int
    rows: list[tuple[int, tuple[int, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = [(seed, ()) for seed in self.seeds]

    def log_p(self, seed: int, prefix: tuple[int, ...]) -> Tensor:
        return log_p_of(seed, prefix, self.vocab_size)

    def __call__(self, tokens: Tensor | None) -> Tensor:
        if tokens is not None:
            self.rows = [
                (seed, (*prefix, token))
                for (seed, prefix), token in zip(self.rows, tokens.tolist(), strict=True)
            ]
        return torch.stack([self.log_p(seed, prefix) for seed, prefix in self.rows])

    def select(self, rows: Tensor) -> None:
        self.rows = [self.rows[row] for row in rows.tolist()]


def every_output(
    seed: int, vocab_size: int, max_length: int, alpha: float
) -> list[tuple[float, tuple[int, ...]]]:
    """All outputs that end within the maximum length, with their scores, best first."""
    table = Table([seed], vocab_size)
    outputs = []
    for length in range(max_length):
        for ids in itertools.product(range(2, vocab_size), repeat=length):
            log_p = sum(
                float(table.log_p(seed, ids[:i])[token]) for i, token in enumerate((*ids, EOS))
            )
            outputs.append((log_p / length_penalty(length + 1, alpha), ids))
    return sorted(outputs, reverse=True)


sentences = st.lists(st.integers(0, 10_000), min_size=1, max_size=4, unique=True)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


@settings(max_examples=60)
@given(sentences, st.integers(3, 5), st.integers(1, 4), alphas)
def test_unlimited_beam_matches_brute_force(
    seeds: list[int], vocab_size: int, max_length: int, alpha: float
) -> None:
    n_prefixes = sum((vocab_size - 2) ** n for n in range(max_length + 1))
    config = SearchConfig(beam_size=max(2, n_prefixes), length_penalty=alpha, n_best=2)
    found = search(Table(seeds, vocab_size), [max_length] * len(seeds), config, EOS)
    for seed, outputs in zip(seeds, found, strict=True):
        expected = every_output(seed, vocab_size, max_length, alpha)[:2]
        assert [one.ids for one in outputs] == [ids for _, ids in expected]
        for one, (score, _) in zip(outputs, expected, strict=True):
            assert one.score == pytest.approx(score, abs=1e-5)
            assert one.finished


@settings(max_examples=60)
@given(sentences, st.integers(3, 30), st.integers(2, 5), alphas, st.data())
def test_search_result_does_not_depend_on_batch_order_or_n_best(
    seeds: list[int], vocab_size: int, beam: int, alpha: float, data: st.DataObject
) -> None:
    lengths = {seed: data.draw(st.integers(1, 12)) for seed in seeds}
    config = SearchConfig(beam_size=beam, length_penalty=alpha, n_best=beam)
    together = search(Table(seeds, vocab_size), [lengths[s] for s in seeds], config, EOS)
    for seed, outputs in zip(seeds, together, strict=True):
        n = data.draw(st.integers(1, beam))
        single = SearchConfig(beam_size=beam, length_penalty=alpha, n_best=n)
        (alone,) = search(Table([seed], vocab_size), [lengths[seed]], single, EOS)
        assert alone == outputs[:n]
        assert len({one.ids for one in outputs}) == len(outputs)
        assert [one.score for one in outputs] == sorted((o.score for o in outputs), reverse=True)
        for one in outputs:
            assert len(one.ids) + one.finished <= lengths[seed]


@settings(max_examples=40)
@given(sentences, st.integers(3, 30), alphas)
def test_early_stopping_finds_same_outputs(seeds: list[int], vocab_size: int, alpha: float) -> None:
    """A search without early stopping finds nothing better."""
    for seed in seeds:
        config = SearchConfig(beam_size=3, length_penalty=alpha, n_best=3)
        (early,) = search(Table([seed], vocab_size), [10], config, EOS)
        assert [one.score for one in early] == pytest.approx(
            [score for score, _ in exhaustive_beam(seed, vocab_size, 3, 10, alpha)][: len(early)],
            abs=1e-5,
        )


def exhaustive_beam(
    seed: int, vocab_size: int, beam: int, max_length: int, alpha: float
) -> list[tuple[float, tuple[int, ...]]]:
    """The same search in plain Python, always up to the maximum length."""
    table = Table([seed], vocab_size)
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, max_length + 1):
        grown = [
            (log_p + float(more), (*ids, token))
            for log_p, ids in live
            for token, more in enumerate(table.log_p(seed, ids))
            if more > -torch.inf
        ]
        best = sorted(grown, reverse=True)[: 2 * beam]
        ended = [(p / length_penalty(length, alpha), ids[:-1]) for p, ids in best if ids[-1] == EOS]
        finished = sorted(finished + ended, reverse=True)[:beam]
        live = [(p, ids) for p, ids in best if ids[-1] != EOS][:beam]
    return finished or [(p / length_penalty(max_length, alpha), ids) for p, ids in live]


def test_beam_size_1_equals_greedy_search() -> None:
    seeds = list(range(20))
    config = SearchConfig(beam_size=1)
    found = search(Table(seeds, 12), [15] * 20, config, EOS)
    greedy = greedy_search(Table(seeds, 12), [15] * 20, 0.6, EOS)
    assert [[one] for one in greedy] == found
    for seed, one in zip(seeds, greedy, strict=True):
        table = Table([seed], 12)
        ids: tuple[int, ...] = ()
        while len(ids) < 15 and (not ids or ids[-1] != EOS):
            ids = (*ids, int(table.log_p(seed, ids).argmax()))
        assert one.ids == (ids[:-1] if ids[-1] == EOS else ids)
        assert one.finished == (ids[-1] == EOS)


def test_forced_prefix_is_kept_and_scored() -> None:
    seeds = [3, 4, 5]
    prefixes = [[7, 8], [], [9]]
    step = Constrained(Table(seeds, 12), ForcedPrefix(prefixes, 12))
    config = SearchConfig(beam_size=4)
    for seed, prefix, (one,) in zip(
        seeds, prefixes, search(step, [9] * 3, config, EOS), strict=True
    ):
        assert list(one.ids[: len(prefix)]) == prefix
        table = Table([seed], 12)
        tokens = [*one.ids, EOS]
        log_p = sum(float(table.log_p(seed, tuple(tokens[:i]))[t]) for i, t in enumerate(tokens))
        assert one.log_probability == pytest.approx(log_p, abs=1e-5)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_only_allowed_tokens_follow_a_forced_prefix(beam_size: int) -> None:
    seeds, prefixes = [3, 4, 5, 6], [[7, 8], [], [9], [9]]
    after = [{EOS, 5}, {2}, {6}, None]
    config = SearchConfig(beam_size=beam_size, n_best=beam_size)
    free = search(Constrained(Table(seeds, 12), ForcedPrefix(prefixes, 12)), [9] * 4, config, EOS)
    step = Constrained(Table(seeds, 12), ForcedPrefix(prefixes, 12, after=after))
    found = search(step, [9] * 4, config, EOS)
    for prefix, allowed, outputs in zip(prefixes, after, found, strict=True):
        for one in outputs:
            tokens = [*one.ids, EOS]
            assert tokens[: len(prefix)] == prefix
            if prefix and allowed:
                assert tokens[len(prefix)] in allowed
    assert found[1] == free[1], "nothing follows an empty prefix"
    assert found[3] == free[3]
    assert found[2] != free[2]


def test_ensemble_of_same_model_twice_equals_model() -> None:
    seeds, config = [1, 2, 3], SearchConfig()
    alone = search(Table(seeds, 9), [8] * 3, config, EOS)
    both = search(Ensemble([Table(seeds, 9), Table(seeds, 9)]), [8] * 3, config, EOS)
    assert [[one.ids for one in outputs] for outputs in alone] == [
        [one.ids for one in outputs] for outputs in both
    ]


def test_ensemble_averages_probabilities() -> None:
    one, other = Table([1], 9), Table([2], 9)
    mean = Ensemble([one, other])(None).exp()
    expected = (one.log_p(1, ()).exp() + other.log_p(2, ()).exp()) / 2
    torch.testing.assert_close(mean[0], expected)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99)), min_size=1, max_size=6))
def test_sample_depends_on_seed_and_not_on_batch(
    rows: list[tuple[int, int]],
) -> None:
    sentences, seeds = zip(*rows, strict=True)
    config, lengths = SamplingConfig(), [12] * len(rows)
    together = sample(Table([*sentences], 9), lengths, seeds, config, EOS)
    for sentence, seed, drawn in zip(sentences, seeds, together, strict=True):
        assert sample(Table([sentence], 9), [12], [seed], config, EOS) == [drawn]


def test_sample_seeds_are_distinct() -> None:
    sources = [[4, 1], [4, 5, 1], [45, 1], [5, 4, 1]]
    seeds = {sample_seed(s, ids, n) for s in range(5) for ids in sources for n in range(20)}
    assert len(seeds) == 5 * 4 * 20
    drawn = sample(Table([1] * 20, 9), [12] * 20, [*seeds][:20], SamplingConfig(), EOS)
    assert len({one.ids for one in drawn}) > 5


def test_top_k_top_p_renormalizes_likeliest_tokens() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    for config, expected in [
        (SamplingConfig(), [0.5, 0.3, 0.15, 0.05]),
        (SamplingConfig(top_k=2), [0.625, 0.375, 0.0, 0.0]),
        (SamplingConfig(top_p=0.49), [1.0, 0.0, 0.0, 0.0]),
        (SamplingConfig(top_p=0.51), [0.625, 0.375, 0.0, 0.0]),
        (SamplingConfig(top_k=3, top_p=0.9), [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0.0]),
    ]:
        assert top_k_top_p(logits, config)[0].tolist() == pytest.approx(expected)


def test_length_penalty_matches_wu_et_al() -> None:
    assert length_penalty(1, 0.6) == 1.0
    assert length_penalty(7, 1.0) == pytest.approx(2.0)
    assert length_penalty(25, 0.6) == pytest.approx(5.0**0.6)
