from dataclasses import dataclass

import torch

from transept.engines.kernels.beams import Slotted
from transept.shapes import Int, Tensor


@dataclass(frozen=True, slots=True)
class Memory(Slotted):
    before: Int[Tensor, "R W"]
    within: Int[Tensor, "2 R W"]
    common: Int[Tensor, " lengths"]


def memory() -> Memory:
    return Memory(torch.arange(12).view(4, 3), torch.arange(24).view(2, 4, 3), torch.arange(4))


def test_first_narrows_slot_axis_named_in_shape() -> None:
    whole = memory()
    first = whole.first(2)
    assert torch.equal(first.before, whole.before[:2])
    assert torch.equal(first.within, whole.within[:, :2])
    assert torch.equal(first.common, whole.common)
    first.within.zero_()
    assert not whole.within[:, :2].any()
    assert whole.within[:, 2:].all()


def test_by_slot_views_allow_moving_sentence() -> None:
    whole, old = memory(), memory()
    for part in whole.by_slot():
        part[0] = part[3]
    assert torch.equal(whole.before[0], old.before[3])
    assert torch.equal(whole.within[:, 0], old.within[:, 3])
    assert torch.equal(whole.within[:, 1:], old.within[:, 1:])
    assert torch.equal(whole.common, old.common)
