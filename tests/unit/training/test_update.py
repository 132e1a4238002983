"""One step: gradients do not depend on micro-batches, and NaN gradients are skipped."""

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from transept import ModelConfig, Transformer
from transept.engines.native.network import encode
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.training.batches import MicroBatch, training_flops
from transept.training.config import AdamConfig
from transept.training.loss import Loss, reference_loss
from transept.training.state import restore_training_tensors, training_tensors
from transept.training.update import MovingAverage, Schedule, Update, make_adam, without_moments

CPU = Runtime(torch.device("cpu"), "fp32")
SENTENCES = [[5, 6, 1], [7, 8, 9, 10, 1], [11, 1], [12, 13, 14, 1], [5, 1], [6, 7, 1]]


def pack(sentences: list[list[int]], extra: int = 0) -> Tokens:
    """The sentences without padding, or with this much of it."""
    width = max(map(len, sentences))
    rows = torch.tensor([s + [0] * (width - len(s)) for s in sentences])
    return Tokens.padded(rows, pad_id=0).without_padding(lambda n_tokens: n_tokens + extra)


def batch(indices: list[int]) -> MicroBatch:
    sources = [SENTENCES[i] for i in indices]
    return MicroBatch(pack(sources), pack([[*s[-2::-1], 1] for s in sources]))


def make(dtype: torch.dtype = torch.float32, ema: float | None = None, **changes: Any) -> Update:
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=20, n_layers=1, d_model=16, d_ff=32, n_heads=2, **{"dropout": 0.0} | changes
    )
    model = Transformer(config).to(dtype)
    return Update(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=Schedule(16, warmup_steps=10),
        loss=Loss(0.1, 0),
        runtime=CPU,
        seed=1,
        ema=None if ema is None else MovingAverage(model, ema),
    )


def numbered(batches: list[MicroBatch]) -> list[MicroBatch]:
    return [dataclasses.replace(one, number=number) for number, one in enumerate(batches)]


def gradients(update: Update) -> list[torch.Tensor]:
    return [p.grad.clone() for p in update.model.parameters() if p.grad is not None]


def tokens(batches: list[MicroBatch]) -> int:
    return sum(len(b.target.ids) for b in batches)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_micro_batches_accumulate_to_gradient_of_whole_batch(
    dtype: torch.dtype, tolerance: float
) -> None:
    whole, parts = [batch([0, 1, 2, 3, 4, 5])], [batch([0, 1, 2]), batch([3]), batch([4, 5])]
    update = make(dtype)
    losses = []
    collected = []
    for batches in (whole, parts):
        update.adam.zero_grad()
        losses.append(update.accumulate(1, batches, tokens(batches)))
        collected.append(gradients(update))
    torch.testing.assert_close(losses[0], losses[1], rtol=tolerance, atol=0)
    for one, other in zip(*collected, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_padding_that_stays_changes_no_gradient(positions: str) -> None:
    update = make(torch.float64, positions=positions, max_positions=8)
    found = []
    for extra in (0, 2, 100):
        source, target = pack(SENTENCES, extra), pack(SENTENCES[::-1], extra)
        assert len(source.ids) == min(19 + extra, 30)
        update.adam.zero_grad()
        sums = update.accumulate(1, [MicroBatch(source, target)], 19)
        found.append([sums.double(), *gradients(update)])
    torch.testing.assert_close(found[1:], [found[0]] * 2)


def test_gradient_is_mean_over_target_tokens() -> None:
    update = make(torch.float64)
    pairs = batch([0, 1, 2])
    update.accumulate(1, [pairs], tokens([pairs]))
    fast = gradients(update)
    update.adam.zero_grad()
    logits = update.model.decode(pairs.target, update.model.encode(pairs.source))
    loss = reference_loss(logits, pairs.target.ids, label_smoothing=0.1, pad_id=0)
    (loss / len(pairs.target.ids)).backward()
    for one, other in zip(fast, gradients(update), strict=True):
        torch.testing.assert_close(one, other)


def test_dropout_depends_on_seed_step_and_micro_batch() -> None:
    update = make(dropout=0.3)
    pairs = batch([0, 1, 2])
    losses = {
        (step, n): [float(x) for x in update.accumulate(step, numbered([pairs] * n), 10)]
        for step, n in [(1, 1), (1, 2), (2, 1)]
    }
    torch.rand(100)  # other random numbers must not matter
    assert [float(x) for x in update.accumulate(1, [pairs], 10)] == losses[1, 1]
    assert losses[2, 1] != losses[1, 1]
    assert losses[1, 2][0] != pytest.approx(2 * losses[1, 1][0])


def test_step_with_nan_gradient_is_skipped_and_counted() -> None:
    update = make()
    pairs = batch([0, 1, 2])
    n = tokens([pairs])
    update(1, [pairs], n)
    good = copy.deepcopy(update.model.state_dict())
    moments = {name: tensor.clone() for name, tensor in training_tensors(update).items()}
    layer: Any = update.model.encoder.layers[0]
    hook = layer.feed_forward.register_forward_hook(lambda *_: _[2] * float("nan"))
    for step in (2, 3):
        values = update(step, [pairs], n)
        assert not values.gradient_norm.isfinite()
    assert [values.suppressed.item(), values.suppressed_in_a_row.item()] == [2.0, 2.0]
    for name, weight in update.model.state_dict().items():
        assert torch.equal(weight, good[name]), name
    for name, tensor in training_tensors(update).items():
        assert torch.equal(tensor, moments[name]), name
    hook.remove()
    values = update(4, [pairs], n)
    assert [values.suppressed.item(), values.suppressed_in_a_row.item()] == [2.0, 0.0]
    assert not torch.equal(update.model.target_embedding.weight, good["target_embedding.weight"])


def test_clipping_limits_gradient_norm() -> None:
    pairs = batch([0, 1, 2])
    update = make()
    update.clip_norm = 1e-3
    before = update(1, [pairs], tokens([pairs])).gradient_norm
    clipped = torch.stack([g.norm() for g in gradients(update)]).norm()
    assert before > 1e-3
    torch.testing.assert_close(clipped, torch.tensor(1e-3), rtol=1e-3, atol=0)


def test_averaged_context_swaps_in_moving_average() -> None:
    update = make(ema=0.5)
    pairs = batch([0, 1, 2])
    start = update.model.target_embedding.weight.detach().clone()
    update(1, [pairs], tokens([pairs]))
    after = update.model.target_embedding.weight.detach().clone()
    with update.averaged():
        inside = update.model.target_embedding.weight.detach().clone()
    torch.testing.assert_close(inside, (start + after) / 2)
    assert torch.equal(update.model.target_embedding.weight, after)


def test_training_tensors_round_trip() -> None:
    pairs = batch([0, 1, 2])
    update, fresh = make(ema=0.9, dropout=0.1), make(ema=0.9, dropout=0.1)
    for step in (1, 2, 3):
        update(step, [pairs], 10)
    tensors = {name: tensor.clone() for name, tensor in training_tensors(update).items()}
    with update.averaged():
        fresh.model.load_state_dict(update.model.state_dict())
    restore_training_tensors(fresh, tensors)
    for one in (update, fresh):
        one(4, [pairs], 10)
    for name, tensor in training_tensors(update).items():
        assert torch.equal(tensor, training_tensors(fresh)[name]), name


def test_training_flops_match_manual_count() -> None:
    """One sentence pair and one layer: every matrix, and attention within the sentences."""
    config = ModelConfig(vocab_size=7, n_layers=1, d_model=4, d_ff=6, n_heads=1, d_k=2, d_v=3)
    s, t = 5, 3
    encoder = s * (4 * 2 + 4 * 2 + 4 * 3 + 3 * 4 + 2 * 4 * 6)
    decoder = t * (4 * 2 + 4 * 2 + 4 * 3 + 3 * 4 + 4 * 2 + 3 * 4 + 2 * 4 * 6) + s * (4 * 2 + 4 * 3)
    attention = (s * s + t * (t + 1) // 2 + s * t) * (2 + 3)
    by_hand = 6 * (encoder + decoder + attention + t * 4 * 7)
    assert training_flops(config, np.array([s]), np.array([t])) == by_hand


def test_decoding_after_update_uses_new_weights() -> None:
    """Decoding caches prepared weights and must notice that the weights changed."""
    update = make()
    model, source = update.model, torch.tensor([[7, 8, 9, 10, 1]])
    with torch.inference_mode():
        before = encode(model, source).states
    update(1, [batch([0, 1])], tokens([batch([0, 1])]))
    model.eval()
    with torch.inference_mode():
        after = encode(model, source).states
        torch.testing.assert_close(after, model.encode(source).states, atol=1e-5, rtol=1e-5)
    assert (after - before).abs().max() > 1e-3


def test_without_moments_lists_parameters_before_first_step() -> None:
    update = make()
    weights = list(update.model.parameters())
    assert [*map(id, without_moments(update.adam))] == [*map(id, weights)]
    update(1, [batch([0, 1])], tokens([batch([0, 1])]))
    assert without_moments(update.adam) == []
