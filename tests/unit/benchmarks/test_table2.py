"""`benchmarks/table2.py`: the networks that it compares with the Transformer, and its record."""

import importlib
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from transept.model.config import ModelConfig
from transept.model.packing import Tokens, pad_rows
from transept.model.transformer import Transformer
from transept.runtime.device import Runtime
from transept.shapes import Tensor
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
FAMILIES = ("recurrent", "convolutional")
CONFIG = ModelConfig.preset("tiny", vocab_size=20, dropout=0.0)
EOS = 1
SOURCES = [[5, 6, 7, 8, 9, EOS], [10, 11, EOS], [12, 13, 14, 15, EOS], [9, 9, 5, EOS]]
TARGETS = [[9, 8, 7, EOS], [4, 5, 6, 7, 8, EOS], [16, EOS], [17, 18, 4, EOS]]


@pytest.fixture(scope="module")
def benchmarks() -> Any:
    """The modules of `benchmarks` that are tested here, by name."""
    names = ("table2", "encoder_decoder", "tables", "figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return SimpleNamespace(**{name: importlib.import_module(name) for name in names})


@pytest.fixture
def without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute with matrix products that a counter sees, and in bfloat16 on any CPU."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest, benchmarks: Any) -> Any:
    torch.manual_seed(1)
    return benchmarks.table2.network(request.param, CONFIG, 32, torch.float32).eval()


def padded() -> tuple[Tensor, Tensor]:
    return pad_rows(SOURCES, 0), pad_rows(TARGETS, 0)


def update_of(model: Any, rate: float = 0.0) -> Update:
    return Update(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=Schedule(1, 1, rate),
        loss=Loss(0.1, 0),
        runtime=Runtime.choose("cpu"),
        seed=1,
    )


def test_logits_have_a_row_for_each_target_token(model: Any) -> None:
    assert model(*padded()).shape == (4, 6, 20)


def test_output_does_not_depend_on_later_target_tokens(model: Any) -> None:
    source, target = padded()
    other = target.clone()
    other[1, 3:] = torch.tensor([12, 13, EOS])
    before, after = model(source, target)[1], model(source, other)[1]
    torch.testing.assert_close(before[:4], after[:4])
    assert not torch.allclose(before[4:], after[4:])


def test_output_depends_on_every_source_token(model: Any) -> None:
    source, target = padded()
    before = model(source, target)[0]
    for position in range(6):
        other = source.clone()
        other[0, position] = 19
        assert not torch.allclose(before, model(other, target)[0])


def test_padding_does_not_change_the_output(model: Any) -> None:
    together = model(*padded())
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = model(torch.tensor([source]), torch.tensor([target]))[0]
        torch.testing.assert_close(together[row, : len(target)], alone, atol=1e-5, rtol=1e-4)


def test_loss_is_the_same_with_and_without_padding_on_the_flat_axis(model: Any) -> None:
    """A GPU keeps the padding of a batch, a CPU removes it."""
    source, target = (Tokens.padded(ids, 0) for ids in padded())
    objective = update_of(model).objective
    kept = objective(MicroBatch(source, target))
    removed = objective(MicroBatch(source.without_padding(), target.without_padding()))
    torch.testing.assert_close(kept, removed, atol=1e-4, rtol=1e-5)


def test_stepwise_output_equals_that_of_teacher_forcing(model: Any, benchmarks: Any) -> None:
    target = torch.tensor([[4, 5, 6, 7], [9, 8, 7, 6], [16, 17, 18, 4], [5, 5, 5, 5]])
    logits = model(padded()[0], target)
    logits[..., 0] = -torch.inf
    expected = logits.log_softmax(-1)
    step = benchmarks.encoder_decoder.NetworkStep.of(model, SOURCES)
    order = torch.arange(4)
    for position in range(4):
        tokens = None if position == 0 else target[order, position - 1]
        torch.testing.assert_close(step(tokens), expected[order, position], atol=1e-5, rtol=1e-4)
        # A search repeats and drops rows.
        chosen = torch.tensor([2, 0, 0, 3, 1])[: 5 - position % 2] % len(order)
        order = order[chosen]
        step.select(chosen)


def test_network_learns_four_pairs_and_translates_them(model: Any, benchmarks: Any) -> None:
    update = update_of(model, rate=0.01)
    source, target = (Tokens.padded(ids, 0).without_padding() for ids in padded())
    for _ in range(80):
        # Schedule(1, 1): step 1 has the whole rate.
        update(1, [MicroBatch(source, target)], len(target.ids))
    for beam in (1, 4):
        found = benchmarks.table2.translated(model, SOURCES, beam)
        assert [[*ids, EOS] for ids in found] == TARGETS


@pytest.mark.usefixtures("without_onednn")
def test_counted_flops_are_those_of_the_forward_pass(model: Any) -> None:
    source, target = torch.full((3, 7), 5), torch.full((3, 9), 6)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(source, target)
    lengths = np.full(3, 7), np.full(3, 9)
    assert 3 * counter.get_total_flops() == model.training_flops(*lengths)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("preset", "vocab_size"), [("base", 37_000), ("base", 8_000), ("tiny", 1_000)]
)
def test_networks_have_as_many_parameters_as_the_transformer(
    benchmarks: Any, family: str, preset: str, vocab_size: int
) -> None:
    config = ModelConfig.preset(preset, vocab_size=vocab_size)
    with torch.device("meta"):
        wanted = Transformer(config).n_parameters()
        found = benchmarks.table2.sized_network(family, config).n_parameters()
    assert abs(found / wanted - 1) < 0.1


@pytest.mark.usefixtures("without_onednn")
def test_lstm_in_bfloat16_gives_nearly_the_same_output(benchmarks: Any) -> None:
    networks = []
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(1)
        networks.append(benchmarks.table2.network("recurrent", CONFIG, 32, dtype).eval())
    exact, rounded = (network(*padded()) for network in networks)
    assert rounded.dtype == torch.float32
    assert not torch.equal(exact, rounded)
    # bfloat16 has 8 bits; the logits are of order one.
    torch.testing.assert_close(exact, rounded, atol=0.05, rtol=0.0)


@pytest.mark.usefixtures("without_onednn")
def test_gradients_are_finite_in_bfloat16(model: Any) -> None:
    """As on a GPU, where autocast chooses the types of products."""
    update = update_of(model)
    update.objective.runtime = Runtime.choose("cpu", "bf16")
    source, target = (Tokens.padded(ids, 0) for ids in padded())
    values = update(1, [MicroBatch(source, target)], 16)
    assert float(values.smoothed) > 0
    assert 0 < float(values.gradient_norm) < float("inf")


def test_cost_of_a_perplexity_is_interpolated_between_validations(benchmarks: Any) -> None:
    points = {"step 10": (60.0, 100.0), "step 20": (120.0, 10.0), "step 30": (180.0, 5.0)}
    rows = [
        {"work": work, "system": "one", "unit": unit, "value": value}
        for work, values in points.items()
        for unit, value in zip(("s", "perplexity"), values, strict=True)
    ]
    cost = partial(benchmarks.tables.cost_of, system="one", unit="s", rows=rows)
    # log10 of the perplexity is 2 at 60 s and 1 at 120 s.
    assert cost(10**1.5) == pytest.approx(90.0)
    assert cost(10.0) == 120.0
    assert cost(200.0) == 60.0
    with pytest.raises(ValueError, match="did not reach"):
        cost(4.9)


def run(*words: object) -> None:
    command = [sys.executable, str(BENCHMARKS / "table2.py"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_families_trained_by_separate_commands_share_a_record(
    tmp_path: Path, benchmarks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table2_cpu.json"
    usual = ["--quick", "--steps", 4, "--points", 2, "--sentences", 2, "--json", file]
    run(*usual, "--family", "convolutional", "transformer")
    run(*usual, "--family", "recurrent")
    record = json.loads(file.read_text())
    systems = ["Transformer", "recurrent", "convolutional"]
    assert [*dict.fromkeys(row["system"] for row in record["rows"])] == systems
    for system in systems:
        rows = [row for row in record["rows"] if row["system"] == system]
        assert [*dict.fromkeys(row["work"] for row in rows)] == [
            "network", "settings", "step 2", "step 4", "end"
        ]  # fmt: skip
        flops = [row["value"] for row in rows if row["unit"] == "FLOPs"]
        assert 0 < flops[0] < flops[1] == flops[2]
        assert all(1 < row["value"] < 2000 for row in rows if row["unit"] == "perplexity")
    monkeypatch.setattr(benchmarks.tables, "RESULTS", tmp_path)
    table = benchmarks.tables.families("table2_cpu").splitlines()
    assert [line.split(" | ")[0] for line in table[2:5]] == [f"| {name}" for name in systems]
    for cost in (benchmarks.figures.TIME, benchmarks.figures.CPU_FLOPS):
        picture = ElementTree.fromstring(benchmarks.figures.progress(cost, record))
        assert len([each for each in picture.iter() if each.tag.endswith("polyline")]) == 6
