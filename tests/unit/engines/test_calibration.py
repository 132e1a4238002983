"""Which matrices are multiplied in integers."""

import json
from pathlib import Path

import pytest

from transept import ModelConfig, Transformer
from transept.engines.native import calibration
from transept.engines.native.calibration import (
    ROWS,
    SINGLE,
    IntegerPlan,
    Times,
    Use,
    calibrated,
    choose,
    measure,
    uses_of,
)
from transept.engines.native.integers import WAYS, InIntegers, is_exact

SHAPE, OTHER = (512, 256), (8000, 256)
WAY = next(iter(WAYS))


def times(single: float, few: float, many: float) -> Times:
    """Times of which those in integers are `few` with up to 8 rows, and `many` with more."""
    return {rows: {SINGLE: single, WAY: few if rows <= 8 else many} for rows in ROWS}


def chosen(plan: IntegerPlan) -> set[tuple[str, tuple[int, int]]]:
    return {(part, shape) for part, shape, _ in plan.matrices}


def test_faster_matrix_is_chosen_and_slower_one_is_not() -> None:
    uses = [Use("decoder", SHAPE, 3), Use("projection", OTHER, 1)]
    plan = choose(uses, {SHAPE: times(2, 3, 3), OTHER: times(2, 1, 1)})
    assert chosen(plan) == {("projection", OTHER)}


def test_matrix_that_is_slower_for_one_sentence_needs_gain_of_another() -> None:
    batches_only, always = times(2, 3, 1), times(2, 1, 1)
    layers = Use("decoder", SHAPE, 1)
    assert not chosen(choose([layers], {SHAPE: batches_only}))
    uses = [layers, Use("projection", OTHER, 1)]
    found = choose(uses, {SHAPE: batches_only, OTHER: always})
    assert chosen(found) == {("decoder", SHAPE), ("projection", OTHER)}
    uses = [Use("decoder", SHAPE, 2), Use("projection", OTHER, 1)]
    found = choose(uses, {SHAPE: batches_only, OTHER: always})
    assert chosen(found) == {("projection", OTHER)}


def test_encoder_needs_gain_for_rows_of_a_sentence_only() -> None:
    found = choose([Use("encoder", SHAPE, 1)], {SHAPE: times(2, 3, 1)})
    ((part, shape, ways),) = found.matrices
    assert (part, shape) == ("encoder", SHAPE)
    assert [rows for rows, _ in ways] == [rows for rows in ROWS if rows >= 4]


def test_way_is_fastest_one_for_each_number_of_rows() -> None:
    few, many = "halves", "onednn"
    known = {rows: {SINGLE: 3.0, few: rows / 4, many: 8 / rows} for rows in ROWS}
    ((*_, ways),) = choose([Use("projection", SHAPE, 1)], {SHAPE: known}).matrices
    assert dict(ways) == {rows: few if rows < 8 else many for rows in ROWS}


def test_nothing_is_chosen_if_no_way_is_exact() -> None:
    known = {rows: {SINGLE: 1.0} for rows in ROWS}
    assert choose([Use("projection", SHAPE, 1)], {SHAPE: known}) == IntegerPlan(frozenset())


def test_every_exact_way_is_measured() -> None:
    found = measure((24, 16))
    assert found.keys() == set(ROWS)
    assert all(seconds > 0 for known in found.values() for seconds in known.values())
    exact = {way for way in WAYS if is_exact(way)}
    assert found[max(ROWS)].keys() == {SINGLE} | {
        way for way in exact if WAYS[way].most_rows >= max(ROWS)
    }


def network() -> Transformer:
    config = ModelConfig(vocab_size=30, n_layers=2, d_model=16, d_ff=32, n_heads=2)
    return Transformer(config).eval()


def test_uses_count_matrices_of_each_part() -> None:
    assert {(use.part, use.shape): use.count for use in uses_of(network())} == {
        ("encoder", (48, 16)): 2,
        ("encoder", (16, 16)): 2,
        ("encoder", (32, 16)): 4,  # the inner matrices, and keys and values of the source
        ("encoder", (16, 32)): 2,
        ("decoder", (48, 16)): 2,
        ("decoder", (16, 16)): 2,
        ("decoder", (32, 16)): 2,
        ("decoder", (16, 32)): 2,
        ("projection", (30, 16)): 1,
    }


def test_times_are_measured_once_per_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = []

    def fake(shape: tuple[int, int]) -> Times:
        measured.append(shape)
        return times(2, 1, 1) if shape == (30, 16) else times(1, 2, 2)

    monkeypatch.setattr(calibration, "measure", fake)
    file = tmp_path / "new" / "products.json"
    plan = calibrated(network(), file)
    assert chosen(plan) == {("projection", (30, 16))}
    shapes = sorted({use.shape for use in uses_of(network())})
    assert measured == shapes
    assert calibrated(network(), file) == plan
    assert measured == shapes

    table = json.loads(file.read_text())
    file.write_text(json.dumps({**table, "machine": ["another"]}))
    assert calibrated(network(), file) == plan
    assert measured == 2 * shapes
    incomplete = json.dumps({**table, "seconds": [[1, 2, {}]]})
    other_version = json.dumps(table).replace(f'"{WAY}"', '"unknown"')
    for damaged in ("", "[]", '{"machine": 1}', incomplete, other_version):
        file.write_text(damaged)
        assert calibrated(network(), file) == plan
    assert measured == 7 * shapes


def test_plan_is_made_if_cache_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "transept").write_text("a file where a directory should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "measure", lambda shape: times(2, 1, 1))
    assert len(calibrated(network()).matrices) == 9


@pytest.mark.skipif(not is_exact(WAY), reason="no product of integers on this machine")
def test_maker_prepares_chosen_shapes_in_integers() -> None:
    plan = IntegerPlan(frozenset({("decoder", (32, 16), ((1, WAY),))}))
    layer = network().decoder.stack[0].feed_forward
    inner, outer = ((w.weight, w.bias) for w in (layer.w_1, layer.w_2))
    assert isinstance(plan.maker("decoder")(*inner), InIntegers)
    assert not isinstance(plan.maker("decoder")(*outer), InIntegers)
    assert not isinstance(plan.maker("encoder")(*inner), InIntegers)
