"""One step on a fixed batch, to compare gradients."""

import torch

from transept.model.packing import Tokens
from transept.shapes import Tensor
from transept.training.batches import MicroBatch
from transept.training.update import Update

Gradients = dict[str, Tensor]


def tiles(device: str, rows: int = 6, width: int = 32) -> MicroBatch:
    """Two sentences per tile, with padding after each."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(4, 500, (2, rows, width), generator=generator)
    half = width // 2
    index = torch.arange(width).expand(rows, width)
    inside = index % half
    real = inside < half - 2
    segments = torch.where(real, 1 + index // half, 0)
    sides = [torch.where(real, side, 0) for side in ids]
    source, target = (
        Tokens.tiled(side.to(device), segments.to(device), (inside * real).to(device))
        for side in sides
    )
    return MicroBatch(source, target)


def gradients(update: Update, batch: MicroBatch) -> tuple[Tensor, Gradients]:
    n = int((batch.target.ids != 0).sum())
    loss, _ = update.accumulate(1, [batch], n)
    named = {n: p.grad.cpu() for n, p in update.model.named_parameters() if p.grad is not None}
    return loss.cpu(), named


def furthest(one: Gradients, other: Gradients) -> float:
    """The largest relative distance of two gradients of the same name."""
    assert one.keys() == other.keys()
    return max(float((one[x] - other[x]).norm() / other[x].norm()) for x in one)
