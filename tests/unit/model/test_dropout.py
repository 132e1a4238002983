import pytest
import torch

from transept.model.layers import Dropout, cpu_dropout_mask


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_dropout_mask_has_share_p_of_zeros_and_mean_1(p: float) -> None:
    torch.manual_seed(0)
    mask = cpu_dropout_mask(torch.empty(1000, 1001), p)
    assert (mask == 0).double().mean().item() == pytest.approx(p, abs=2e-3)
    assert mask.double().mean().item() == pytest.approx(1.0, abs=3e-3)
    assert len(mask.unique()) == 2
    # Adjacent elements share 64 random bits and must be independent.
    zeros = (mask == 0).double().flatten()
    both = (zeros[:-1] * zeros[1:]).mean().item()
    assert both == pytest.approx(p * p, abs=2e-3)


def test_dropout_is_reproducible_with_same_seed() -> None:
    x = torch.ones(3, 5)
    dropout = Dropout(0.5)
    torch.manual_seed(4)
    first = dropout(x)
    torch.manual_seed(4)
    assert torch.equal(dropout(x), first)
    torch.manual_seed(4)
    torch.testing.assert_close(dropout.add(torch.full((3, 5), 7.0), x), first + 7.0)


def test_dropout_gradient_equals_mask() -> None:
    x = torch.ones(40, 5, requires_grad=True)
    out = Dropout(0.5)(x)
    out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, out.detach())
