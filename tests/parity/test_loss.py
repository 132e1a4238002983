"""The chunked loss compared with the reference: value and every gradient."""

import pytest
import torch
from torch import nn

from transept.training import loss as module
from transept.training.loss import Loss, Smoothing, reference_loss

PAD = 0


@pytest.mark.parametrize("smoothing", ["uniform", "wrong-only"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows_per_chunk", [1, 3, 100])
def test_chunked_loss_matches_reference(
    monkeypatch: pytest.MonkeyPatch,
    smoothing: Smoothing,
    epsilon: float,
    bias: bool,
    rows_per_chunk: int,
) -> None:
    torch.manual_seed(0)
    vocabulary, width, n = 11, 6, 10
    monkeypatch.setitem(module.CHUNK_ELEMENTS, "cpu", rows_per_chunk * vocabulary)
    monkeypatch.setattr(module, "CHUNK_ROWS", 1)
    states = torch.randn(n, width, dtype=torch.float64, requires_grad=True)
    projection = nn.Linear(width, vocabulary, bias=bias, dtype=torch.float64)
    ids = torch.randint(0, vocabulary, (n,))
    ids[3] = PAD
    inputs = [states, *projection.parameters()]

    expected = reference_loss(
        projection(states), ids, label_smoothing=epsilon, pad_id=PAD, smoothing=smoothing
    )
    sums = Loss(epsilon, PAD, smoothing)(states, projection, ids)
    torch.testing.assert_close(sums.smoothed, expected)
    assert not sums.nll.requires_grad
    torch.testing.assert_close(
        sums.nll, reference_loss(projection(states), ids, label_smoothing=0.0, pad_id=PAD)
    )
    for slow, fast in zip(
        torch.autograd.grad(0.7 * expected, inputs),
        torch.autograd.grad(0.7 * sums.smoothed, inputs),
        strict=True,
    ):
        torch.testing.assert_close(fast, slow)


def test_chunked_loss_is_same_without_gradients() -> None:
    torch.manual_seed(0)
    states, projection = torch.randn(5, 4), nn.Linear(4, 9, bias=False)
    ids = torch.randint(1, 9, (5,))
    loss = Loss(0.1, PAD)
    with torch.no_grad():
        quiet = loss(states, projection, ids)
    torch.testing.assert_close(quiet.smoothed, loss(states, projection, ids).smoothed.detach())
