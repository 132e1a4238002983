import json
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np
import pytest
from tests.memory_corpus import MemoryCorpus

from transept.data.batching.layouts import BatchPlan
from transept.data.batching.mixture import Mixture, Numbers
from transept.data.batching.plan import Plan, Position, measure
from transept.data.config import BatchConfig
from transept.errors import ConfigError, DataError

SMALL = BatchConfig(source_tokens=64, target_tokens=64, tile=16, max_length=32, window=40)


def corpus(n: int = 100, longest: int = 20, seed: int = 0) -> MemoryCorpus:
    chance = np.random.default_rng(seed)
    lengths = chance.integers(1, longest + 1, (2, n)).tolist()
    sources, targets = ([[5] * (length - 1) + [1] for length in side] for side in lengths)
    return MemoryCorpus(sources, targets)


@dataclass
class LengthsAlone:
    """A corpus of lengths only, too large to generate its sentences. Planning reads none."""

    source_lengths: Numbers
    target_lengths: Numbers
    hash: str = "lengths alone"

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> Numbers:
        raise NotImplementedError

    target = source


def realistic(n: int) -> Mixture:
    chance = np.random.default_rng(0)
    source = chance.lognormal(np.log(26), 0.55, n)
    target = source * chance.lognormal(0, 0.16, n)
    source, target = (np.clip(np.rint(side), 2, 400) for side in (source, target))
    return Mixture([LengthsAlone(source.astype(np.int64), target.astype(np.int64))])


def numbers(batch: BatchPlan) -> list[int]:
    return [int(number) for micro in batch.micro for number in micro.pairs.numbers]


def test_plan_matches_recorded_hashes() -> None:
    """If numpy or this package changes the order, increment PLANNER_VERSION."""
    sources = [[5] * (7 * i % 20) + [1] for i in range(100)]
    targets = [[5] * (11 * i % 20) + [1] for i in range(100)]
    plan = Plan(Mixture([MemoryCorpus(sources, targets)]), SMALL, seed=1)
    assert [batch.hash[:8] for _, batch in islice(plan.batches(), 3)] == [
        "2090db38",
        "19d2a631",
        "247cbff6",
    ]
    assert plan.fingerprint[:8] == "c5f50e15"


def test_position_survives_json() -> None:
    position = Position(3, 1, 4).replanned(8)
    assert Position(**json.loads(json.dumps(asdict(position)))) == position


def test_positions_count_batches_then_windows_then_epochs() -> None:
    plan = Plan(Mixture([corpus()]), SMALL, seed=1)
    sizes = [len(plan.window(0, window)) for window in range(plan.n_windows)]
    positions = [position for position, _ in islice(plan.batches(), sum(sizes))]
    assert plan.n_windows == 2
    assert positions[:2] == [Position(0, 0, 1), Position(0, 0, 2)]
    assert positions[sizes[0] - 1] == Position(0, 1, 0)
    assert positions[-1] == Position(1, 0, 0)


@pytest.mark.parametrize(
    "position",
    [
        Position(0, 2, 0),
        Position(0, 0, 999),
        Position(0, 0, 0, ((999, 1),)),
        Position(-1, 0, 0),
        Position(0, 0, -1),
    ],
)
def test_position_of_another_plan_is_rejected(position: Position) -> None:
    plan = Plan(Mixture([corpus()]), SMALL, seed=1)
    with pytest.raises(DataError, match="not in this plan of 2 windows"):
        next(plan.batches(position))


def test_fingerprint_changes_with_every_input_of_the_plan() -> None:
    def fingerprint(seed: int = 1, weight: float = 1, data: int = 0, tile: int = 16) -> str:
        config = BatchConfig(source_tokens=64, target_tokens=64, tile=tile, max_length=32)
        return Plan(Mixture([corpus(seed=data)], [weight]), config, seed).fingerprint

    others = [fingerprint(seed=2), fingerprint(weight=2), fingerprint(data=1), fingerprint(tile=8)]
    assert len({fingerprint(), *others}) == 5
    assert fingerprint() == fingerprint()


@pytest.mark.parametrize(("weight", "times"), [(1, {1}), (2, {2}), (0.5, {0, 1}), (1.5, {1, 2})])
def test_weight_sets_how_often_an_epoch_contains_a_pair(weight: float, times: set[int]) -> None:
    mixture = Mixture([corpus(60), corpus(40, seed=1)], [weight, 1])
    plan = Plan(mixture, SMALL, seed=1)
    taken = np.zeros(100, dtype=int)
    for _, batch in plan.batches(epochs=1):
        np.add.at(taken, numbers(batch), 1)
    assert set(taken[:60]) == times
    assert taken[:60].sum() == 60 * weight
    assert set(taken[60:]) == {1}
    assert plan.n_pairs == taken.sum()


def test_weight_of_one_half_takes_another_half_each_epoch() -> None:
    plan = Plan(Mixture([corpus()], [0.5]), SMALL, seed=1)
    halves = [
        {n for window in range(plan.n_windows) for batch in plan.window(epoch, window)
         for n in numbers(batch)}
        for epoch in (0, 1)
    ]  # fmt: skip
    assert len(halves[0]) == len(halves[1]) == 50
    assert halves[0] != halves[1]


def test_long_pairs_are_skipped_and_counted() -> None:
    config = BatchConfig(source_tokens=64, target_tokens=64, tile=16, max_length=10)
    data = [corpus(50), corpus(50, seed=1)]
    plan = Plan(Mixture(data), config, seed=1)
    planned = {n for _, batch in plan.batches(epochs=1) for n in numbers(batch)}
    longest = np.maximum(*(
        np.concatenate([getattr(one, f"{side}_lengths") for one in data])
        for side in ("source", "target")
    ))  # fmt: skip
    assert planned == set(np.flatnonzero(longest <= 10))
    assert plan.left_out == tuple((longest > 10).reshape(2, 50).sum(1))


def test_plan_without_pairs_raises() -> None:
    config = BatchConfig(source_tokens=64, target_tokens=64, tile=16, max_length=1)
    with pytest.raises(DataError, match="of 20 pairs in 1 corpus, 20 have a side longer"):
        Plan(Mixture([MemoryCorpus([[4, 1]] * 20, [[4, 1]] * 20)]), config, seed=1)


def test_error_names_an_empty_sentence() -> None:
    with pytest.raises(DataError, match="the target sentence of pair 1 of corpus 1 is empty"):
        Mixture([corpus(), MemoryCorpus([[1], [1]], [[1], []])])


def test_number_of_weights_must_match_corpora() -> None:
    with pytest.raises(DataError, match="1 corpora but 2 weights"):
        Mixture([corpus()], [1, 2])


def test_budget_too_small_for_the_longest_pair_is_rejected() -> None:
    with pytest.raises(ConfigError) as caught:
        BatchConfig(source_tokens=1000, target_tokens=200, tile=128, max_length=250)
    assert [problem.key for problem in caught.value.problems] == ["target_tokens"]
    assert "at least 256" in str(caught.value)


def test_tiles_are_whole_rows_within_the_smaller_budget() -> None:
    config = BatchConfig(source_tokens=25_000, target_tokens=20_000, micro_batches=2)
    assert config.row_tiles == 2
    assert config.tiles == 78
    assert config.tiles * config.tile * config.micro_batches <= 20_000


@pytest.mark.parametrize("micro_batches", [1, 8])
def test_packed_fills_97_percent_of_the_tighter_side(micro_batches: int) -> None:
    plan = Plan(realistic(2**17), BatchConfig(micro_batches=micro_batches), seed=1)
    fill = measure(plan)
    assert max(fill.source, fill.target) > 0.97
    assert min(fill.source, fill.target) > 0.95


def test_fill_counts_match_the_plan() -> None:
    plan = Plan(Mixture([corpus()]), SMALL, seed=1)
    fill = measure(plan)
    batches = [batch for _, batch in plan.batches(epochs=1)]
    assert fill.batches == fill.batches_of_epoch == len(batches)
    assert fill.pairs == plan.n_pairs
    assert fill.source_tokens == sum(batch.n_source_tokens for batch in batches)
    assert fill.target == sum(batch.n_target_tokens for batch in batches) / (64 * len(batches))
    assert measure(plan, windows=1).windows == 1


def test_empty_tiles_are_spread_over_all_micro_batches() -> None:
    """41 full tiles make 6 batches of 2 x 4: each micro-batch gets 3 or 4 of them."""
    config = BatchConfig(
        source_tokens=128, target_tokens=128, tile=16, max_length=16, micro_batches=2
    )
    plan = Plan(Mixture([MemoryCorpus([[1] * 16] * 41, [[1] * 16] * 41)]), config, seed=1)
    taken = [[len(micro.pairs) for micro in batch.micro] for batch in plan.window(0, 0)]
    assert len(taken) == 6
    assert {n for batch in taken for n in batch} == {3, 4}
    assert max(map(sum, taken)) - min(map(sum, taken)) == 1


def test_long_pairs_of_a_batch_share_its_first_micro_batches() -> None:
    sources = [[1] * 20] * 10 + [[1] * 8] * 150
    config = BatchConfig(
        source_tokens=256, target_tokens=256, tile=16, max_length=32, micro_batches=4
    )
    plan = Plan(Mixture([MemoryCorpus(sources, sources)]), config, seed=1)
    for batch in plan.window(0, 0):
        row_tiles = [micro.shape.row_tiles for micro in batch.micro]
        assert row_tiles == sorted(row_tiles, reverse=True)


def test_by_length_puts_similar_lengths_together_within_the_budget() -> None:
    config = BatchConfig(
        source_tokens=200, target_tokens=120, layout="by_length", max_length=20, micro_batches=2
    )
    plan = Plan(Mixture([corpus(400)]), config, seed=1)
    batches = plan.window(0, 0)
    for batch in batches:
        assert len(batch.micro) == 2
        for micro in batch.micro:
            assert micro.shape.source_positions <= 100
            assert micro.shape.target_positions <= 60
    longest = [int(micro.pairs.longest.max()) for batch in batches for micro in batch.micro]
    spread = [int(np.ptp(micro.pairs.longest)) for batch in batches for micro in batch.micro]
    assert np.mean(spread) < 1
    assert longest != sorted(longest)


def test_by_length_splits_the_last_batch_of_a_window() -> None:
    config = BatchConfig(
        source_tokens=40, target_tokens=40, layout="by_length", max_length=10, micro_batches=4
    )
    plan = Plan(Mixture([MemoryCorpus([[1] * 5] * 5, [[1] * 5] * 5)]), config, seed=1)
    batches = plan.window(0, 0)
    sizes = sorted(sorted(len(micro.pairs) for micro in batch.micro) for batch in batches)
    assert sizes == [[1, 1, 1, 2]]
