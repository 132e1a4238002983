"""The GPU compared with the CPU: the same step, the same loss. Run with `pytest -m gpu`."""

from pathlib import Path

import pytest
import torch
from tests.integration.workshop import open_workshop, run
from tests.parity.steps import furthest, gradients, tiles
from torch import nn

from transept import ModelConfig, Transformer
from transept.checkpoint import CHECKPOINTS, TRAINING, WEIGHTS, Checkpoints
from transept.errors import ConfigError
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss, reference_loss
from transept.training.update import Schedule, Update, make_adam, rehearse

pytestmark = pytest.mark.gpu

CONFIG = ModelConfig(vocab_size=500, n_layers=2, d_model=64, d_ff=128, n_heads=4, dropout=0.0)


def update_on(device: str, precision: str = "fp32") -> Update:
    torch.manual_seed(0)
    model = Transformer(CONFIG)
    runtime = Runtime.choose(device, precision)
    model.to(runtime.device)
    return Update(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=Schedule(64),
        loss=Loss(0.1, 0),
        runtime=runtime,
        seed=1,
    )


def test_gpu_step_in_fp32_matches_cpu() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    loss, expected = gradients(update_on("cpu"), tiles("cpu"))
    other, actual = gradients(update_on("cuda"), tiles("cuda"))
    torch.testing.assert_close(other, loss, rtol=1e-5, atol=0)
    for name, gradient in expected.items():
        torch.testing.assert_close(actual[name], gradient, rtol=1e-3, atol=1e-6)


def test_gpu_step_in_bf16_is_close_to_fp32() -> None:
    loss, expected = gradients(update_on("cpu"), tiles("cpu"))
    other, actual = gradients(update_on("cuda", "bf16"), tiles("cuda"))
    torch.testing.assert_close(other, loss, rtol=5e-3, atol=0)
    assert {gradient.dtype for gradient in actual.values()} == {torch.float32}
    assert furthest(actual, expected) < 0.15


def test_chunked_loss_in_bf16_is_close_to_reference() -> None:
    torch.manual_seed(0)
    states = torch.randn(3000, 64, device="cuda", requires_grad=True)
    projection = nn.Linear(64, 5000, bias=False, device="cuda")
    ids = torch.randint(0, 5000, (3000,), device="cuda")
    expected = reference_loss(projection(states), ids, label_smoothing=0.1, pad_id=0)
    (wanted,) = torch.autograd.grad(expected, states)
    with torch.autocast("cuda", torch.bfloat16):
        sums = Loss(0.1, 0)(states, projection, ids)
    (got,) = torch.autograd.grad(sums.smoothed, states)
    torch.testing.assert_close(sums.smoothed, expected, rtol=1e-3, atol=0)
    assert (got - wanted).norm() / wanted.norm() < 0.02


def test_rehearse_reports_batch_that_does_not_fit() -> None:
    update = update_on("cuda")

    def batch(divisor: int) -> MicroBatch:
        rows = torch.full(((1 << 22) // divisor, 256), 7, device="cuda")
        tokens = Tokens.padded(rows, 0)
        return MicroBatch(tokens, tokens)

    with pytest.raises(ConfigError, match=r"does not fit into memory; 1/\d+ of it fits"):
        rehearse(update, batch(1), smaller=batch, divisors=(16, 64, 256, 1024))
    assert torch.cuda.memory_allocated() < 1 << 30


def test_resumed_gpu_run_gives_same_bits(tmp_path: Path) -> None:
    """With the fused update and ordered sums."""
    workshop = open_workshop(tmp_path)
    sizes = ["model.d_model=64", "model.d_ff=128", "batch.source_tokens=1024"]
    words = ["train", workshop.config, *sizes, "batch.target_tokens=1024", "--deterministic"]
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert run(*words, "--output", once) == 0
    assert run(*words, "training.max_steps=13", "--output", twice) == 0
    assert run(*words, "--output", twice, "--allow-change") == 0
    ours, theirs = (Checkpoints(path / CHECKPOINTS).newest() for path in (once, twice))
    assert ours is not None
    assert theirs is not None
    assert ours.sha256[WEIGHTS] == theirs.sha256[WEIGHTS]
    assert ours.sha256[TRAINING] == theirs.sha256[TRAINING]
