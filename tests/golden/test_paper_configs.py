"""Each TOML file in configs/ compared with its row of the paper."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from transept import ModelConfig, config
from transept.experiment import Experiment
from transept.model.config import LABEL_SMOOTHING

CONFIGS = Path(__file__).parents[2] / "configs"
ROWS = sorted(path.stem for path in (CONFIGS / "table3").glob("*.toml"))


def test_every_row_of_table_3_has_a_file() -> None:
    assert len(ROWS) == 19


@pytest.mark.parametrize("row", ROWS)
def test_row_differs_from_base_only_in_its_columns(row: str) -> None:
    experiment = config.load(Experiment, CONFIGS / f"table3/{row}.toml")
    assert experiment.model == ModelConfig.preset(row)
    assert experiment.loss.label_smoothing == LABEL_SMOOTHING[row]
    assert experiment.training.max_steps == 100_000


@pytest.mark.parametrize("change", ["n_heads=2", "d_model=128", "d_k=24"])
@pytest.mark.parametrize("row", ROWS)
def test_preset_and_file_of_a_row_agree_when_a_field_changes(row: str, change: str) -> None:
    overridden = config.load(Experiment, CONFIGS / f"table3/{row}.toml", [f"model.{change}"])
    field, value = change.split("=")
    assert ModelConfig.preset(row, **{field: int(value)}) == overridden.model


def test_base_and_big_configs_match_section_5() -> None:
    base = config.load(Experiment, CONFIGS / "base.toml")
    big = config.load(Experiment, CONFIGS / "big.toml")
    assert (base.model, big.model) == (ModelConfig.preset("base"), ModelConfig.preset("big"))
    assert (base.training.max_steps, big.training.max_steps) == (100_000, 300_000)
    for experiment in (base, big):
        adam, schedule = experiment.adam, experiment.schedule
        assert (adam.beta1, adam.beta2, adam.epsilon) == (0.9, 0.98, 1e-9)
        assert (schedule.warmup_steps, schedule.factor) == (4000, 1.0)
        assert experiment.loss.label_smoothing == 0.1


def test_averaged_checkpoints_span_same_share_of_run_as_paper() -> None:
    """Section 6.1: checkpoints every 10 minutes; 5 in 12 hours (base), 20 in 3.5 days (big)."""
    for name, last, hours in (("base", 5, 12), ("big", 20, 3.5 * 24)):
        checkpoint = config.load(Experiment, CONFIGS / f"{name}.toml").checkpoint
        assert checkpoint.keep == last
        faster = hours * 900.0  # seconds of a run that takes a quarter of the paper's time
        ours = checkpoint.keep * checkpoint.seconds_between(faster) / faster
        assert ours == pytest.approx(last * 10 / (hours * 60), rel=0.02)


def test_parser_configs_match_section_6_3() -> None:
    wsj = config.load(Experiment, CONFIGS / "parsing-wsj.toml")
    semi = config.load(Experiment, CONFIGS / "parsing-semi.toml")
    paper = ModelConfig.preset("parsing")
    for experiment, vocabulary in ((wsj, 16_000), (semi, 32_000)):
        model = experiment.model
        assert model.source_vocab_size == vocabulary
        for field in ("n_layers", "d_model", "d_ff", "n_heads", "d_k", "d_v"):
            assert getattr(model, field) == getattr(paper, field)
    assert wsj.model.attention_dropout > 0
    assert [corpus.weight for corpus in semi.data.train] == [20, 1]
    small = config.load(Experiment, CONFIGS / "parsing-small.toml")
    assert not small.model.sized
    craft = config.load(Experiment, CONFIGS / "parsing-craft.toml")
    assert (craft.model.n_layers, craft.loss) == (paper.n_layers, wsj.loss)


def test_paper_setting_of_table_4_is_that_of_section_6_3() -> None:
    wsj = config.load(Experiment, CONFIGS / "parsing-wsj.toml")
    paper = config.load(Experiment, CONFIGS / "table4/paper.toml")
    assert paper.model == replace(wsj.model, attention_dropout=paper.model.attention_dropout)
    assert paper.model.attention_dropout > 0
    assert (paper.schedule.warmup_steps, paper.schedule.factor) == (4000, 1.0)
    assert (paper.batch.source_tokens, paper.batch.target_tokens) == (25_000, 25_000)
    assert (paper.adam, paper.loss) == (wsj.adam, wsj.loss)
    assert paper.checkpoint.keep == 5


@pytest.mark.parametrize(
    ("row", "changed"),
    [("rate", {"schedule"}), ("named", {"data"}), ("released", {"schedule", "data"})],
)
def test_row_of_table_4_differs_from_paper_only_in_its_tables(row: str, changed: set[str]) -> None:
    paper = config.load(Experiment, CONFIGS / "table4/paper.toml")
    other = config.load(Experiment, CONFIGS / f"table4/{row}.toml")
    tables = {field.name for field in fields(Experiment)}
    assert {name for name in tables if getattr(other, name) != getattr(paper, name)} == changed


def test_rate_of_table_4_is_that_of_craft() -> None:
    rate = config.load(Experiment, CONFIGS / "table4/rate.toml")
    craft = config.load(Experiment, CONFIGS / "parsing-craft.toml")
    assert rate.schedule == craft.schedule
