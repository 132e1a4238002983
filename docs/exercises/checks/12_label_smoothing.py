"""Check of exercise 12."""

import math
from functools import partial

import torch
from comparing import close, must, shaped

from transept.training.loss import reference_loss, smoothed_targets


def check(student):
    """First the loss, then its optimum."""
    check_loss(student.smoothed_loss)
    check_optimum(student.lowest_loss)


def check_loss(loss):
    """Compare with the package's loss in cases that separate typical mistakes."""
    torch.manual_seed(1)
    logits, ids = torch.randn(6, 9), torch.tensor([3, 8, 1, 4, 0, 0])
    expected = partial(reference_loss, pad_id=0)
    plain = loss(logits[:4], ids[:4], 0.0, 0)
    shaped(plain, (), "the loss")
    must(not plain.isnan(), "the loss is NaN: 0 · −∞ is NaN, leave out the column of padding")
    unsmoothed = expected(logits[:4], ids[:4], label_smoothing=0.0)
    close(plain, unsmoothed, "with ε = 0 the loss of 4 tokens")
    other = logits.clone()
    other[4:] += torch.randn(2, 9)
    both = loss(logits, ids, 0.1, 0), loss(other, ids, 0.1, 0)
    finite = bool(both[0].isfinite())
    must(finite, f"the loss is {both[0]:.0f}: positions whose target is padding count")
    must(
        torch.allclose(*both),
        "the loss depends on the logits of positions whose target is padding",
    )
    other = logits.clone()
    other[:, 0] += 5
    must(
        torch.allclose(both[0], loss(other, ids, 0.1, 0)),
        "the loss depends on the logit of padding: leave it out of the softmax",
    )
    smoothed = expected(logits, ids, label_smoothing=0.1)
    only_wrong = expected(logits, ids, label_smoothing=0.1, smoothing="wrong-only")
    must(
        torch.allclose(both[0], smoothed) or not torch.allclose(both[0], only_wrong),
        "ε is spread over the wrong entries only: the right one has a share, too",
    )
    close(both[0], smoothed, "with ε = 0.1 the loss", ": V counts 8 entries, without padding")


def check_optimum(lowest):
    """The loss of a network that predicts the target distribution is the lowest."""
    for n_entries, epsilon in ((8, 0.1), (36_999, 0.1), (8, 0.3)):
        ids = torch.tensor([1])
        targets = smoothed_targets(ids, n_entries + 1, label_smoothing=epsilon, pad_id=0)
        expected = reference_loss(targets.log(), ids, label_smoothing=epsilon, pad_id=0).item()
        found = lowest(n_entries, epsilon)
        must(isinstance(found, float), f"lowest_loss returns {found!r}, not a float")
        must(
            found > expected - 1e-4,
            f"with V = {n_entries:,} and ε = {epsilon} no network reaches {found:.4f}: "
            f"one that predicts the target distribution has {expected:.4f}",
        )
        must(
            math.isclose(found, expected, rel_tol=1e-3),
            f"with V = {n_entries:,} and ε = {epsilon} the lowest loss is {expected:.4f}, "
            f"not {found:.4f}: some network is better",
        )
