"""The record of a beam search equals the search: its outputs, their scores, and what is kept."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_search import EOS, Table, alphas

from transept.decoding.beam import (
    Beams,
    Candidates,
    SearchObserver,
    beam_states,
    search,
    search_states,
)
from transept.decoding.config import SearchConfig
from transept.decoding.record import SearchRecord
from transept.decoding.step import length_penalty, results


@settings(max_examples=100)
@given(st.integers(0, 10_000), st.integers(3, 30), st.integers(1, 12), st.integers(2, 5), alphas)
def test_record_equals_the_search(
    seed: int, vocab_size: int, max_length: int, beam: int, alpha: float
) -> None:
    config = SearchConfig(beam_size=beam, length_penalty=alpha, n_best=beam)
    (expected,) = search(Table([seed], vocab_size), [max_length], config, EOS)
    record = SearchRecord()
    observed = beam_states(Table([seed], vocab_size), [max_length], config, EOS, record)
    (outputs,) = results(observed, 1)
    assert outputs == expected
    for output in outputs:
        found = record.find(output, EOS)
        assert found.log_p == pytest.approx(output.log_probability, abs=1e-4)
        assert found.score == pytest.approx(output.score, abs=1e-4)
    table = Table([seed], vocab_size)
    kept: dict[int | None, tuple[int, ...]] = {None: ()}
    for n_tokens, step in enumerate(record.steps, start=1):
        assert [one.log_p for one in step] == sorted((one.log_p for one in step), reverse=True)
        assert len(step) <= 2 * beam
        assert sum(one.fate == "kept" for one in step) <= beam
        for one in step:
            before = kept[one.parent]  # only a kept hypothesis of the step before is extended
            assert one.ids[:-1] == before
            log_p = sum(
                float(table.log_p(seed, one.ids[:at])[token]) for at, token in enumerate(one.ids)
            )
            assert one.log_p == pytest.approx(log_p, abs=1e-4)
            assert one.score == pytest.approx(log_p / length_penalty(n_tokens, alpha), abs=1e-4)
            assert (one.ids[-1] == EOS) >= (one.fate == "finished")
        kept = {one.number: one.ids for one in step if one.fate == "kept"}
    numbers = [one.number for step in record.steps for one in step]
    assert numbers == [*range(len(numbers))]


def test_no_unfinished_hypothesis_could_overtake_the_output() -> None:
    config = SearchConfig(beam_size=4, n_best=4)
    record = SearchRecord()
    (outputs,) = results(search_states(Table([3], 6), [40], config, EOS, record), 1)
    assert len(record.steps) < 40, "the search reached the maximum length"
    assert record.bound <= outputs[-1].score + 1e-6


def test_record_rejects_several_sentences() -> None:
    states = beam_states(Table([1, 2], 6), [5, 5], SearchConfig(), EOS, SearchRecord())
    with pytest.raises(ValueError, match="a record is of one sentence"):
        next(states)


def test_observer_is_a_function_of_candidates_and_beams() -> None:
    seen: list[tuple[int, int]] = []

    def observe(candidates: Candidates, beams: Beams) -> None:
        seen.append((candidates.log_p.shape[1], len(beams.steps)))

    assert isinstance(SearchRecord(), SearchObserver)
    states = [*beam_states(Table([1, 2], 9), [5, 5], SearchConfig(), EOS, observe)]
    assert seen == [(8, number) for number in range(1, len(states) + 1)]
