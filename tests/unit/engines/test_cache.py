"""Sentences that end during a search leave the cache."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transept.decoding.step import not_done
from transept.engines.native.cache import Kept

flags = st.lists(st.booleans(), min_size=1, max_size=12)


@given(flags)
def test_only_the_last_sentences_change_their_places(done: list[bool]) -> None:
    left = not_done(done)
    assert sorted(left) == [index for index, one in enumerate(done) if not one]
    assert all(index >= len(left) for place, index in enumerate(left) if index != place)


@given(flags, st.integers(0, 1), st.data())
def test_kept_slices_are_the_selected_ones(
    done: list[bool], axis: int, data: st.DataObject
) -> None:
    """For any choice and order, also of a view whose memory has gaps."""
    n = len(done)
    chosen = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n))
    for sentences in map(torch.tensor, (not_done(done) or [0], chosen)):
        whole = torch.arange(4 * (n + 2) * 3).view((n + 2, 4, 3) if axis == 0 else (4, n + 2, 3))
        x = whole.narrow(axis, 0, n)
        expected = x.index_select(axis, sentences)
        assert torch.equal(Kept.of(sentences)(x, axis), expected)
