"""The statistics of a sweep: means over seeds, their intervals, and the order of the rows."""

from pathlib import Path

import pytest

from transept import ModelConfig, config
from transept.apps.recipes.sweep import TableRow, rows_of
from transept.apps.recipes.table import (
    PAPER,
    Mean,
    RowResult,
    _t_quantile,
    agreement,
    summarize,
)
from transept.experiment import Experiment
from transept.model.config import PAPER_PARAMETERS

CONFIGS = Path(__file__).resolve().parents[4] / "configs"


def result(row: str, seed: int, perplexity: float, bleu: float = 20.0) -> RowResult:
    return RowResult(row, seed, 10, 1000, perplexity, bleu, 1.0, 1.0, "cpu", None, "")


def test_rows_are_the_files_of_table_3() -> None:
    rows = rows_of([CONFIGS / "table3"])
    assert {row.name for row in rows} == PAPER.keys() == PAPER_PARAMETERS.keys()
    assert rows[0] == TableRow("base")
    assert TableRow("D-ls0", ("loss.label_smoothing=0.0",)) in rows
    for row in rows:
        base = config.load(Experiment, CONFIGS / "base.toml", row.changes)
        assert base.model == ModelConfig.preset(row.name)


def test_rows_may_be_given_by_their_files() -> None:
    some = [CONFIGS / "table3" / f"{name}.toml" for name in ("big", "A-h1", "big")]
    assert [row.name for row in rows_of(some)] == ["base", "big", "A-h1"]


def test_changes_of_a_file_are_overrides_without_the_file_it_extends(tmp_path: Path) -> None:
    path = tmp_path / "row.toml"
    path.write_text(
        'extends = "missing.toml"\n[model]\nnorm = "pre"\nd_k = 16\n[data]\ntrain = ["a", "b"]\n'
    )
    changes = config.changes(path)
    assert changes[:2] == ['model.norm="pre"', "model.d_k=16"]
    assert config._parse_override(changes[2]) == {"data": {"train": ["a", "b"]}}


def test_rows_share_one_estimate_of_the_variance() -> None:
    results = [result("base", 1, 5.0), result("A-h1", 1, 6.0), result("big", 1, 4.0)]
    assert [str(row.perplexity) for row in summarize(results)] == ["5.00", "6.00", "4.00"]
    assert Mean(6.0, None) - Mean(5.0, 0.1) == Mean(1.0, None)
    results += [result("base", 2, 5.2), result("A-h1", 2, 6.4)]
    base, one_head, big = summarize(results)
    assert (base.row, base.n_seeds) == ("base", 2)
    assert base.perplexity.value == pytest.approx(5.1)
    # The variances are 0.02 and 0.08, each with one degree of freedom.
    margin = 4.303 * (0.05 / 2) ** 0.5
    assert base.perplexity.margin == pytest.approx(margin, rel=0.02)
    assert one_head.perplexity.margin == base.perplexity.margin
    assert big.perplexity.margin == pytest.approx(margin * 2**0.5, rel=0.02)
    assert base.bleu == Mean(20.0, 0.0)
    difference = one_head.perplexity - base.perplexity
    assert difference.value == pytest.approx(1.1)
    assert difference.margin == pytest.approx(margin * 2**0.5, rel=0.02)
    assert str(one_head.perplexity) == f"6.20 ± {base.perplexity.margin:.2f}"


@pytest.mark.parametrize(
    ("freedom", "expected"), [(2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (38, 2.024)]
)
def test_quantile_of_the_t_distribution(freedom: int, expected: float) -> None:
    assert _t_quantile(freedom) == pytest.approx(expected, rel=0.01)


def test_agreement_is_the_rank_correlation_with_the_paper() -> None:
    rows = [result(name, 1, 2 * PAPER[name][0]) for name in PAPER]
    assert agreement(summarize(rows)) == pytest.approx(1)
    scored = [result(name, 1, 2.0, -PAPER[name][1]) for name in PAPER]
    assert agreement(summarize(scored), "bleu") == pytest.approx(-1)
    # Two equal values of the paper share their rank.
    names = ["base", "E-learned", "A-h1"]
    swapped = [result(name, 1, value) for name, value in zip(names, (3.0, 2.0, 1.0), strict=True)]
    assert agreement(summarize(swapped)) == pytest.approx(-(0.75**0.5))
    assert agreement(summarize(rows[:2])) is None
    assert agreement(summarize([result(name, 1, 2.0) for name in PAPER])) is None
    assert agreement(summarize([result("mine", 1, 2.0), *rows[:2]])) is None
