"""Search for outputs with required tokens, compared with brute force."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_search import EOS, Table, alphas, every_output

from transept.decoding.beam import search, stream
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input, Spelling
from transept.decoding.step import Constrained, ForcedPrefix, Hypothesis, results
from transept.decoding.terms import MAX_PLACEMENTS, Requirement, needed, term_states, width_of

Tokens = tuple[int, ...]
tokens = st.integers(2, 4)
sequences = st.lists(st.lists(tokens, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3)
followers = st.none() | st.frozensets(tokens, min_size=1)
seeds = st.integers(0, 10_000)


def contains(
    ids: Tokens, required: Sequence[Tokens], spelling: Spelling, before: int | None = None
) -> bool:
    """Whether the required sequences occur without overlap, by trying every choice."""
    if not required or not ids:
        return not required
    for number, one in enumerate(required):
        others = [*required[:number], *required[number + 1 :]]
        forms = [*spelling.forms.get(one, ())]
        if not forms or before not in spelling.opening:
            forms.append(one)
        if before is None:
            forms += spelling.first.get(one, ())
        for form in forms:
            rest = ids[len(form) :]
            counts = not rest or spelling.after is None or rest[0] in spelling.after
            found = ids[: len(form)] == form and counts
            if found and contains(rest, others, spelling, form[-1]):
                return True
    return contains(ids[1:], required, spelling, ids[0])


def forms_of(one: Tokens, data: st.DataObject) -> dict[Tokens, list[Tokens]]:
    """Another form of a sequence, not shorter than it, or none."""
    form = st.lists(tokens, min_size=len(one), max_size=len(one) + 1).map(tuple)
    return data.draw(st.just({}) | st.fixed_dictionaries({one: form.map(lambda ids: [ids])}))


def searched(seed: int, vocab_size: int, one: Input, config: SearchConfig) -> list[Hypothesis]:
    (outputs,) = results(term_states(Table([seed], vocab_size), [one], config, EOS), 1)
    return outputs


@settings(max_examples=60)
@given(seeds, sequences, followers, st.integers(1, 5), alphas, st.data())
def test_unlimited_beam_with_required_tokens_matches_brute_force(
    seed: int,
    required: list[Tokens],
    after: frozenset[int] | None,
    max_length: int,
    alpha: float,
    data: st.DataObject,
) -> None:
    forms, first = (forms_of(data.draw(st.sampled_from(required)), data) for _ in range(2))
    spelling = Spelling(after, data.draw(st.frozensets(tokens)), forms, first)
    config = SearchConfig(beam_size=400, length_penalty=alpha, n_best=2)
    outputs = searched(seed, 5, Input([EOS], max_length, (), required, spelling), config)
    expected = [
        (score, ids)
        for score, ids in every_output(seed, 5, max_length, alpha)
        if contains(ids, required, spelling)
    ][:2]
    assert {one.finished for one in outputs} == {bool(expected)}
    if expected:
        assert [one.ids for one in outputs] == [ids for _, ids in expected]
        assert [one.score for one in outputs] == pytest.approx([s for s, _ in expected], abs=1e-5)


@settings(max_examples=25)
@given(seeds, st.lists(st.lists(st.integers(2, 9), min_size=1, max_size=4), max_size=4), st.data())
def test_narrow_beam_places_all_required_tokens(
    seed: int, required: list[list[int]], data: st.DataObject
) -> None:
    beam, n_tokens = data.draw(st.integers(1, 4)), sum(map(len, required))
    exact = [tuple(one) for one in required]
    one = Input([EOS], n_tokens + data.draw(st.integers(1, 8)), required=required)
    outputs = searched(seed, 12, one, SearchConfig(beam_size=beam, n_best=beam))
    assert outputs
    for n in range(1, beam):
        assert searched(seed, 12, one, SearchConfig(beam_size=beam, n_best=n)) == outputs[:n]
    assert len({one.ids for one in outputs}) == len(outputs)
    assert [one.score for one in outputs] == sorted((o.score for o in outputs), reverse=True)
    for output in outputs:
        assert contains(output.ids, exact, Spelling())
        assert len(output.ids) + output.finished <= one.max_length
        assert output.finished or len(output.ids) == one.max_length
        table, ids = Table([seed], 12), (*output.ids, *[EOS] * output.finished)
        log_p = sum(float(table.log_p(seed, ids[:i])[token]) for i, token in enumerate(ids))
        assert output.log_probability == pytest.approx(log_p, abs=1e-4)


@settings(max_examples=4)
@given(st.lists(seeds, min_size=1, max_size=3, unique=True), st.integers(32, 35), alphas, st.data())
def test_search_without_required_tokens_equals_beam_search(
    seeds: list[int], beam: int, alpha: float, data: st.DataObject
) -> None:
    lengths = [data.draw(st.integers(1, 8)) for _ in seeds]
    # As wide as the search with required tokens at most is.
    config = SearchConfig(beam_size=beam, length_penalty=alpha, n_best=beam)
    inputs = [Input([EOS], length) for length in lengths]
    ours = results(term_states(Table(seeds, 60), inputs, config, EOS), len(seeds))
    theirs = search(Table(seeds, 60), lengths, config, EOS)
    for mine, other in zip(ours, theirs, strict=True):
        assert [one.ids for one in mine] == [one.ids for one in other]
        assert [one.finished for one in mine] == [one.finished for one in other]
        assert [o.score for o in mine] == pytest.approx([o.score for o in other], abs=1e-5)


@settings(max_examples=12)
@given(st.lists(seeds, min_size=1, max_size=4, unique=True), st.data())
def test_required_tokens_of_other_sentences_do_not_change_result(
    seeds: list[int], data: st.DataObject
) -> None:
    pair = st.tuples(st.integers(2, 9), st.integers(2, 9))
    alone = {
        seed: Input([EOS], data.draw(st.integers(1, 12)), required=[data.draw(pair)])
        for seed in seeds
    }
    config = SearchConfig(beam_size=2, n_best=2)
    inputs = [alone[seed] for seed in seeds]
    together = results(term_states(Table(seeds, 12), inputs, config, EOS), len(seeds))
    assert together == [searched(seed, 12, alone[seed], config) for seed in seeds]


def test_too_small_maximum_length_gives_most_complete_unfinished_output() -> None:
    one = Input([EOS], 3, required=[(5, 6), (7, 8)])
    (output,) = searched(1, 12, one, SearchConfig())
    assert not output.finished
    assert len(output.ids) == 3
    requirement = Requirement(one)
    placed = requirement.start
    for before, token in itertools.pairwise((None, *output.ids)):
        assert token is not None
        placed, n_needed = requirement.extend(placed, before, token)
    assert n_needed == 1


def test_repeated_and_nested_sequences_are_counted_separately() -> None:
    required = [(5,), (5,), (5, 6), (5, 6, 7)]
    (output,) = searched(2, 12, Input([EOS], 20, required=required), SearchConfig())
    assert output.finished
    assert contains(output.ids, required, Spelling())
    assert output.ids.count(5) >= 4
    assert output.ids.count(6) >= 2


def test_sequences_that_overlap_in_many_ways_take_bounded_work() -> None:
    required = [(5,) * n for n in range(1, 9)]
    requirement = Requirement(Input([EOS], 99, required=required))
    placed = requirement.start
    for before, token in itertools.pairwise((None, *[5] * 20, 6, *[5] * 60, 6)):
        assert token is not None
        placed, n_needed = requirement.extend(placed, before, token)
        assert len(placed) <= MAX_PLACEMENTS
    assert n_needed < 36


def test_sequence_followed_by_part_of_word_does_not_count() -> None:
    requirement = Requirement(Input([EOS], 9, (), [(5,)], Spelling(frozenset({7}))))
    start = requirement.start
    placed, n_needed = requirement.extend(start, None, 5)
    assert [needed(start), n_needed] == [1, 0]
    assert requirement.extend(placed, 5, 6)[1] == 1
    assert requirement.extend(placed, 5, 7)[1] == 0


def test_forced_prefix_counts_as_part_of_output() -> None:
    step = Constrained(Table([3], 12), ForcedPrefix([[7, 8]], 12))
    one = Input([EOS], 9, prefix=[7, 8], required=[(8,), (9,)])
    ((output,),) = results(term_states(step, [one], SearchConfig(), EOS), 1)
    assert output.ids[:2] == (7, 8)
    assert 9 in output.ids
    assert contains(output.ids, [(8,), (9,)], Spelling())


@settings(max_examples=25)
@given(seeds, st.integers(1, 4), st.integers(2, 9))
def test_stream_with_required_tokens_keeps_stable_tokens(seed: int, beam: int, token: int) -> None:
    config, one = SearchConfig(beam_size=beam), Input([EOS], 12, required=[(token,)])
    *before, last = stream(term_states(Table([seed], 12), [one], config, EOS))
    assert list(last.outputs) == searched(seed, 12, one, config)
    stable = 0
    for partial in before:
        assert stable <= partial.stable <= len(partial.ids)
        stable = partial.stable
        assert partial.ids[:stable] == last.ids[:stable]


@pytest.mark.parametrize(
    ("beam", "required", "width"), [(1, 1, 8), (5, 3, 20), (4, 90, 32), (40, 90, 40)]
)
def test_width_grows_with_required_tokens_up_to_limit(beam: int, required: int, width: int) -> None:
    one = Input([EOS], 200, required=[(5,)] * required)
    assert width_of(one, SearchConfig(beam_size=beam)) == width
