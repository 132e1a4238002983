import math

import pytest
import torch
from torch.nn import functional as F

from transept.training.loss import Smoothing, reference_loss, smoothed_targets

VOCABULARY, PAD = 7, 0


def test_smoothed_targets_give_padding_probability_0() -> None:
    ids = torch.tensor([3, 6])
    uniform = smoothed_targets(ids, VOCABULARY, label_smoothing=0.3, pad_id=PAD)
    assert uniform[0].tolist() == pytest.approx([0, 0.05, 0.05, 0.75, 0.05, 0.05, 0.05])
    wrong_only = smoothed_targets(
        ids, VOCABULARY, label_smoothing=0.3, pad_id=PAD, smoothing="wrong-only"
    )
    assert wrong_only[1].tolist() == pytest.approx([0, 0.06, 0.06, 0.06, 0.06, 0.06, 0.7])


@pytest.mark.parametrize("smoothing", ["uniform", "wrong-only"])
def test_smoothed_targets_of_padding_position_are_zero(smoothing: Smoothing) -> None:
    ids = torch.tensor([3, PAD, 6])
    targets = smoothed_targets(
        ids, VOCABULARY, label_smoothing=0.3, pad_id=PAD, smoothing=smoothing
    )
    assert targets.sum(dim=1).tolist() == pytest.approx([1, 0, 1])


def test_uniform_smoothing_matches_torch_cross_entropy() -> None:
    logits, ids = torch.randn(20, VOCABULARY), torch.randint(1, VOCABULARY, (20,))
    ours = reference_loss(logits, ids, label_smoothing=0.1, pad_id=PAD)
    torchs = F.cross_entropy(logits[:, 1:], ids - 1, label_smoothing=0.1, reduction="sum")
    torch.testing.assert_close(ours, torchs)


def test_wrong_only_smoothing_equals_uniform_with_other_epsilon() -> None:
    """ε' = εV/(V−1), where V does not count padding."""
    logits, ids = torch.randn(20, VOCABULARY), torch.randint(1, VOCABULARY, (20,))
    n = VOCABULARY - 1
    wrong_only = reference_loss(
        logits, ids, label_smoothing=0.1, pad_id=PAD, smoothing="wrong-only"
    )
    uniform = reference_loss(logits, ids, label_smoothing=0.1 * n / (n - 1), pad_id=PAD)
    torch.testing.assert_close(wrong_only, uniform)


@pytest.mark.parametrize("smoothing", ["uniform", "wrong-only"])
def test_padding_has_no_loss_and_no_gradient(smoothing: Smoothing) -> None:
    logits = torch.randn(4, VOCABULARY, requires_grad=True)
    ids = torch.tensor([3, PAD, 5, PAD])
    loss = reference_loss(logits, ids, label_smoothing=0.1, pad_id=PAD, smoothing=smoothing)
    alone = reference_loss(
        logits[::2], ids[::2], label_smoothing=0.1, pad_id=PAD, smoothing=smoothing
    )
    torch.testing.assert_close(loss, alone)
    loss.backward()
    assert logits.grad is not None
    assert not logits.grad[1::2].any()
    assert not logits.grad[:, PAD].any()


def test_loss_without_smoothing_is_sum_of_negative_log_likelihood() -> None:
    logits = torch.zeros(3, VOCABULARY)
    loss = reference_loss(logits, torch.tensor([1, 2, 3]), label_smoothing=0.0, pad_id=PAD)
    assert loss.item() == pytest.approx(3 * math.log(VOCABULARY - 1))
