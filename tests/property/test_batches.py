"""Properties of batches, for any corpus and any config."""

import typing
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.memory_corpus import MemoryCorpus

from transept.data.batching.feed import Feed
from transept.data.batching.layouts import BatchPlan, MicroPlan, Shape
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import Plan, Position
from transept.data.config import BatchConfig
from transept.model.packing import Tokens
from transept.shapes import Tensor
from transept.training.batches import Loader

LONGEST = 40

corpora = st.lists(
    st.lists(st.tuples(st.integers(1, LONGEST), st.integers(1, LONGEST)), min_size=1, max_size=60),
    min_size=1,
    max_size=2,
)
"""The lengths of the pairs of each corpus."""


LayoutName = Literal["packed", "by_length"]


@st.composite
def configs(draw: st.DrawFn, *layouts: LayoutName) -> BatchConfig:
    tile = draw(st.integers(8, 24))
    micro_batches = draw(st.integers(1, 3))
    max_length = draw(st.integers(20, LONGEST))
    least = micro_batches * tile * -(-LONGEST // tile)
    return BatchConfig(
        source_tokens=draw(st.integers(least, 4 * least)),
        target_tokens=draw(st.integers(least, 4 * least)),
        layout=draw(st.sampled_from(layouts or typing.get_args(LayoutName))),
        tile=tile,
        micro_batches=micro_batches,
        window=draw(st.integers(5, 80)),
        max_length=max_length,
    )


def sentence(length: int, salt: int) -> list[int]:
    return [4 + (salt * 31 + position * 7) % 97 for position in range(length - 1)] + [1]


def mixture(lengths: list[list[tuple[int, int]]], weights: tuple[float, ...] = ()) -> Mixture:
    made = [
        MemoryCorpus(
            [sentence(source, 2 * i) for i, (source, _) in enumerate(pairs)],
            [sentence(target, 2 * i + 1) for i, (_, target) in enumerate(pairs)],
        )
        for pairs in lengths
    ]
    return Mixture(made, weights)


def epoch(plan: Plan, number: int = 0) -> list[BatchPlan]:
    return [
        batch for window in range(plan.n_windows) for batch in plan.window(number, window)
    ]  # fmt: skip


def numbers(batches: list[BatchPlan]) -> list[int]:
    return [n for batch in batches for micro in batch.micro for n in micro.pairs.numbers.tolist()]


def hashes(batches: list[BatchPlan]) -> list[str]:
    return [batch.hash for batch in batches]


def rows(at: Any, lengths: Any, width: int) -> tuple[Any, Any]:
    """The rows in which each sentence starts and ends."""
    return at // width, (at + lengths - 1) // width


@settings(max_examples=60)
@given(corpora, configs(), st.sampled_from([0.3, 1, 1.5, 2]), st.integers(0, 2))
def test_epoch_contains_each_pair_weight_times(
    lengths: list[list[tuple[int, int]]], config: BatchConfig, weight: float, number: int
) -> None:
    data = mixture(lengths, (weight, *[1.0] * (len(lengths) - 1)))
    fits = np.maximum(data.source_lengths, data.target_lengths) <= config.max_length
    first = np.arange(len(data)) < len(lengths[0])
    if not data.epoch_size(fits):
        return
    taken = np.zeros(len(data), dtype=int)
    for batch in epoch(Plan(data, config, seed=1), number):
        assert len(batch.micro) == config.micro_batches
        for micro in batch.micro:
            np.add.at(taken, micro.pairs.numbers, 1)
    assert not taken[~fits].any()
    assert (taken[fits & ~first] == 1).all()
    assert set(taken[fits & first]) <= {int(np.floor(weight)), int(np.ceil(weight))}
    assert taken[first].sum() == np.floor(weight) * (fits & first).sum() + round(
        weight % 1 * (fits & first).sum()
    )


changes = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=4)
"""After how many batches the number of micro-batches changes, and its new value."""


@settings(max_examples=60)
@given(corpora, configs(), st.sampled_from([1, 1.5, 2]), changes)
def test_changing_micro_batches_keeps_number_of_each_pair(
    lengths: list[list[tuple[int, int]]],
    config: BatchConfig,
    weight: float,
    changes: list[tuple[int, int]],
) -> None:
    data = mixture([[(3, 3)], *lengths], (weight, *[1.0] * len(lengths)))
    expected = numbers(epoch(Plan(data, config, seed=1)))
    found, at, now = [], Position(), config
    for steps, other in changes:
        taken = list(islice(Plan(data, now, seed=1).batches(at, epochs=1), steps))
        found += numbers([batch for _, batch in taken])
        at = (taken[-1][0] if taken else at).replanned(now.micro_batches)
        now = replace(config, micro_batches=1 + other % config.micro_batches)
    rest = list(Plan(data, now, seed=1).batches(at, epochs=1))
    found += numbers([batch for _, batch in rest])
    assert sorted(found) == sorted(expected)
    assert all(len(batch.micro) == now.micro_batches for _, batch in rest)


def check_packed(micro: MicroPlan, config: BatchConfig) -> None:
    assert (micro.shape.n_rows, micro.shape.source_width, micro.shape.target_width) == (
        config.tiles, config.tile, config.tile,
    )  # fmt: skip
    long = micro.pairs.longest > config.tile
    assert micro.shape.row_tiles == (config.row_tiles if long.any() else 1)
    sides = ((micro.source_at, micro.pairs.sources), (micro.target_at, micro.pairs.targets))
    for at, lengths in sides:
        begin, end = rows(at, lengths, config.tile)
        assert (begin == end)[~long].all()
        wide_begin, wide_end = rows(at, lengths, config.tile * micro.shape.row_tiles)
        assert (wide_begin == wide_end).all()
        # Long pairs start a wide row and do not share their tiles.
        assert not (at[long] % (config.tile * config.row_tiles)).any()
        slots = np.concatenate([np.zeros(0, int), *map(np.arange, at, at + lengths)])
        assert len(set(slots)) == len(slots)
        assert (slots < micro.shape.n_rows * config.tile).all()
    tile_of = [rows(at, lengths, config.tile)[0] for at, lengths in sides]
    assert (tile_of[0] == tile_of[1]).all()
    spans = -(-micro.pairs.longest // config.tile)
    own = [set(range(t, t + k)) for t, k in zip(tile_of[0][long], spans[long], strict=True)]
    assert all(not tiles & set(tile_of[0][~long]) for tiles in own)


@settings(max_examples=60)
@given(corpora, configs("packed"))
def test_packed_pairs_stay_within_tiles(
    lengths: list[list[tuple[int, int]]], config: BatchConfig
) -> None:
    data = mixture([[(3, 3)], *lengths])
    plan = Plan(data, config, seed=1)
    assert config.tiles * config.tile * config.micro_batches <= min(
        config.source_tokens, config.target_tokens
    )
    for window in range(plan.n_windows):
        batches = plan.window(0, window)
        for batch in batches:
            for micro in batch.micro:
                check_packed(micro, config)


@settings(max_examples=60)
@given(corpora, configs("by_length"))
def test_by_length_batches_stay_within_budget(
    lengths: list[list[tuple[int, int]]], config: BatchConfig
) -> None:
    for batch in epoch(Plan(mixture([[(3, 3)], *lengths]), config, seed=1)):
        for micro in batch.micro:
            assert micro.shape.source_positions * config.micro_batches <= config.source_tokens
            assert micro.shape.target_positions * config.micro_batches <= config.target_tokens
            assert (micro.source_at == np.arange(len(micro.pairs)) * micro.shape.source_width).all()
            assert (micro.pairs.sources <= micro.shape.source_width).all()
            assert (micro.pairs.targets <= micro.shape.target_width).all()


@settings(max_examples=40)
@given(corpora, configs(), st.integers(0, 2**40))
def test_plan_depends_only_on_data_config_and_seed(
    lengths: list[list[tuple[int, int]]], config: BatchConfig, seed: int
) -> None:
    lengths = [[(3, 3)] * 30, *lengths]
    plans = [Plan(mixture(lengths), config, seed) for _ in range(2)]
    assert plans[0].fingerprint == plans[1].fingerprint
    # Requested in another order, as after a resume.
    later = epoch(plans[1], 1)
    assert hashes(epoch(plans[0])) == hashes(epoch(plans[1]))
    assert hashes(epoch(plans[0], 1)) == hashes(later)
    other = Plan(mixture(lengths), config, seed + 1)
    assert len({tuple(hashes(e)) for e in (epoch(plans[0]), later, epoch(other))}) == 3


@settings(max_examples=40)
@given(corpora, configs(), st.data())
def test_plan_resumed_at_any_position_continues_unchanged(
    lengths: list[list[tuple[int, int]]], config: BatchConfig, data: st.DataObject
) -> None:
    pairs = mixture([[(3, 3)], *lengths])
    whole = list(islice(Plan(pairs, config, seed=1).batches(), 12))
    at = data.draw(st.integers(0, len(whole) - 1))
    position: Position = whole[at][0]
    rest = islice(Plan(pairs, config, seed=1).batches(position), len(whole) - at - 1)
    assert [(p, b.hash) for p, b in rest] == [(p, b.hash) for p, b in whole[at + 1 :]]


def sentences(side: Tensor) -> list[list[int]]:
    """The expected content of each slot, computed token by token."""
    found: dict[int, dict[int, int]] = {}
    for ids, segments, positions in zip(*side.tolist(), strict=True):
        for token, segment, position in zip(ids, segments, positions, strict=True):
            if segment:
                assert position not in found.setdefault(segment, {})
                found[segment][position] = token
            else:
                assert (token, position) == (0, 0)
    assert sorted(found) == list(range(1, len(found) + 1))
    return [[found[n][position] for position in range(len(found[n]))] for n in sorted(found)]


def check_collated(
    micro: tuple[Shape, Tensor, Tensor], plan: MicroPlan, data: Mixture
) -> tuple[int, int]:
    """The source and target tokens found at their planned positions."""
    shape, source, target = micro
    for side, name in ((source, "source"), (target, "target")):
        expected = []
        for number in plan.pairs.numbers.tolist():
            corpus = 0
            while number >= len(data.corpora[corpus]):
                number -= len(data.corpora[corpus])
                corpus += 1
            expected.append(getattr(data.corpora[corpus], name)(number).tolist())
        assert sentences(side) == expected
        if shape.n_pairs:
            compact = Tokens.tiled(*side, row_tiles=shape.row_tiles).without_padding()
            apart = compact.layout.to_rows(compact.ids)
            assert apart[compact.layout.segments > 0].tolist() == compact.ids.tolist()
    assert shape.n_pairs == len(plan.pairs)
    return int((source[1] > 0).sum()), int((target[1] > 0).sum())


@settings(max_examples=40)
@given(corpora, configs())
def test_collated_batch_contains_all_sentences(
    lengths: list[list[tuple[int, int]]], config: BatchConfig
) -> None:
    lengths = [[(3, 3), *lengths[0]], *lengths[1:]]
    data = mixture(lengths)
    plans = [batch for _, batch in Plan(data, config, seed=1).batches(epochs=1)]
    with Loader(Feed(mixture=data, config=config, seed=1, epochs=1)) as loader:
        for plan, (header, block) in zip(plans, loader, strict=True):
            assert header.hash == plan.hash
            micros = zip(header.cut(block), plan.micro, strict=True)
            counts = [check_collated(micro, its_plan, data) for micro, its_plan in micros]
            totals = tuple(map(sum, zip(*counts, strict=True)))
            assert totals == (header.n_source_tokens, header.n_target_tokens)
            assert totals == (plan.n_source_tokens, plan.n_target_tokens)
