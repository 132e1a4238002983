"""Stable tokens of a stream never change, and a stream ends with the result of search."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_search import EOS, Table, alphas

from transept.decoding.beam import search, search_states, stream
from transept.decoding.config import SearchConfig
from transept.decoding.step import Constrained, ForcedPrefix, Partial


def streamed(seed: int, vocab_size: int, max_length: int, config: SearchConfig) -> list[Partial]:
    return list(stream(search_states(Table([seed], vocab_size), [max_length], config, EOS)))


@settings(max_examples=150)
@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(1, 12), st.integers(1, 5), alphas)
def test_stream_ends_with_search_result_and_keeps_stable_tokens(
    seed: int, vocab_size: int, max_length: int, beam: int, alpha: float
) -> None:
    config = SearchConfig(beam_size=beam, length_penalty=alpha, n_best=beam)
    *before, last = streamed(seed, vocab_size, max_length, config)
    (found,) = search(Table([seed], vocab_size), [max_length], config, EOS)
    assert list(last.outputs) == found
    assert last.ids == found[0].ids
    assert last.stable == len(last.ids)
    stable = 0
    for partial in before:
        assert not partial.outputs
        assert stable <= partial.stable <= len(partial.ids)
        stable = partial.stable
        assert partial.ids[:stable] == last.ids[:stable]


def test_greedy_stream_is_stable_immediately() -> None:
    partials = streamed(3, 12, 15, SearchConfig(beam_size=1))
    assert all(partial.stable == len(partial.ids) for partial in partials)
    assert [len(partial.ids) for partial in partials[:-1]] == list(range(1, len(partials)))


def test_beam_stream_is_mostly_stable_before_end() -> None:
    """Over many sentences, most tokens are stable while the search is still running."""
    config = SearchConfig(beam_size=4)
    early = total = 0
    for seed in range(30):
        *before, last = streamed(seed, 6, 25, config)
        early += before[-1].stable if before else 0
        total += len(last.ids)
    assert early > total / 2


def test_forced_prefix_is_stable_from_start() -> None:
    step = Constrained(Table([5], 12), ForcedPrefix([[7, 8, 9]], 12))
    partials = list(stream(search_states(step, [12], SearchConfig(beam_size=4), EOS)))
    for number, partial in enumerate(partials, start=1):
        assert partial.ids[: min(number, 3)] == (7, 8, 9)[:number]
        assert partial.stable >= min(number, 3)
