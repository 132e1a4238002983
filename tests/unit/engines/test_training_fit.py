"""Which networks the fast training step supports, and the warnings about others."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from transept import ModelConfig, config
from transept.assembly import build_update, fused_obstacles
from transept.assembly.training import fused_warnings
from transept.data.config import BatchConfig
from transept.engines.choice import training_obstacles
from transept.experiment import Experiment
from transept.model.config import PRESETS
from transept.runtime.device import Runtime
from transept.training.config import TrainingConfig
from transept.training.update import Update

GPU = Runtime(torch.device("cuda"), "bf16")
GPU_LIKE = Runtime(torch.device("cpu"), "bf16")


def test_fused_training_supports_paper_networks() -> None:
    pytest.importorskip("triton")
    known = {
        name for name in PRESETS if not training_obstacles(ModelConfig.preset(name), BatchConfig())
    }
    # A head of width 512 is too large for the kernels.
    assert set(PRESETS) - known == {"A-h1"}


def test_fused_training_supports_parser_configs() -> None:
    pytest.importorskip("triton")
    for path in (Path(__file__).parents[3] / "configs").glob("parsing-*.toml"):
        experiment = config.load(Experiment, path)
        on_a_cpu = ["batch.layout = 'by_length'"] if path.stem == "parsing-small" else []
        assert training_obstacles(experiment.model, experiment.batch) == on_a_cpu, path.name


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ModelConfig(vocab_size=50, activation_dropout=0.1), "model.activation_dropout = 0.1"),
        (ModelConfig(vocab_size=50, d_k=48), "model.d_k = 48"),
    ],
)
def test_training_obstacle_is_reported_by_config_key(model: ModelConfig, reason: str) -> None:
    pytest.importorskip("triton")
    assert training_obstacles(model, BatchConfig()) == [reason]


def test_max_length_4096_is_training_obstacle() -> None:
    pytest.importorskip("triton")
    batch = BatchConfig(max_length=4096, source_tokens=10_000, target_tokens=10_000)
    assert training_obstacles(ModelConfig(vocab_size=50), batch) == ["batch.max_length = 4096"]


def test_unsupported_layout_and_precision_are_reported() -> None:
    experiment = Experiment(
        model=ModelConfig(vocab_size=50), batch=BatchConfig(layout="by_length", tile=100)
    )
    pytest.importorskip("triton")
    reasons = fused_obstacles(experiment, Runtime(torch.device("cpu"), "fp32"))
    assert reasons == [
        "batch.tile = 100",
        "batch.layout = 'by_length'",
        "training.precision = 'fp32'",
    ]


def test_missing_triton_is_warned_about(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("transept.engines.choice.find_spec", lambda name: None)
    experiment = Experiment(model=ModelConfig(vocab_size=50))
    assert fused_obstacles(experiment, GPU_LIKE) == ["Triton is not installed"]
    (said,) = fused_warnings(experiment, GPU)
    assert said.startswith("the fused kernels cannot be used (Triton is not installed); falling")


def test_no_warning_on_cpu_or_with_plain_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transept.engines.choice.find_spec", lambda name: None)
    experiment = Experiment(model=ModelConfig(vocab_size=50))
    assert fused_warnings(experiment, Runtime(torch.device("cpu"), "fp32")) == []
    plain = replace(experiment, training=TrainingConfig(kernels="plain"))
    assert fused_warnings(plain, GPU) == []


def test_cpu_uses_plain_update() -> None:
    experiment = Experiment(model=ModelConfig(vocab_size=50, n_layers=1, d_model=32, d_ff=32))
    update = build_update(experiment, Runtime.choose("cpu"))
    assert type(update) is Update
