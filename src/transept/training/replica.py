"""Gradients summed over ranks, while the backward pass still runs where that can be had."""

import inspect
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.futures import Future

from transept.runtime.distributed import World
from transept.shapes import Float, Tensor

PIECE = 1 << 24
"""Numbers that are summed over ranks in one call."""
LINE = 64
"""Numbers to a line of memory: where each gradient begins in a flat piece."""


def replicate(module: nn.Module, world: World) -> nn.Module:
    """A module whose backward pass leaves the sum of all ranks' gradients, on every rank.

    Outside of `no_sync`, each rank must call it equally often.
    """
    if not world.joined:
        return module
    ddp = nn.parallel.DistributedDataParallel
    # Tables of sinusoids are each rank's own: they are as long as its sentences need.
    known = inspect.signature(ddp).parameters
    keep = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    settings: dict[str, Any] = {"gradient_as_bucket_view": True, keep: False}
    replica = ddp(module, **settings)
    replica.register_comm_hook(world, _sum_over_ranks)
    return replica


def no_sync(module: nn.Module) -> AbstractContextManager[Any]:
    """Within it, the gradients of what `replicate` gave stay on their rank."""
    if isinstance(module, nn.parallel.DistributedDataParallel):
        return module.no_sync()
    return nullcontext()


def _sum_over_ranks(state: object, bucket: GradBucket) -> Future[torch.Tensor]:
    """What DDP does with a bucket of gradients: a sum. Its own habit, the mean, is not wanted.

    The loss is already divided by the number of target tokens of all ranks.
    """
    world = cast(World, state)
    world.pulse.at("reducing gradients")
    buffer = bucket.buffer()
    sent = buffer if world.wire is None else buffer.to(world.wire)

    def arrived(future: Future[list[Tensor]]) -> Tensor:
        total = future.value()[0]
        return total if world.wire is None else buffer.copy_(total)

    future: Future[list[Tensor]] = dist.all_reduce(sent, async_op=True).get_future()
    return future.then(arrived)


class FlatGradients:
    """All gradients in one piece of memory, where they stay: for those that no autograd made."""

    def __init__(self, parameters: Sequence[Float[Tensor, "..."]], world: World) -> None:
        self._world = world
        sizes = [-(-parameter.numel() // LINE) * LINE for parameter in parameters]
        self._flat = torch.zeros(sum(sizes), device=parameters[0].device)
        for parameter, part in zip(parameters, self._flat.split(sizes), strict=True):
            parameter.grad = part[: parameter.numel()].view_as(parameter)

    def total(self) -> None:
        """Sum them over all ranks."""
        self._world.pulse.at("reducing gradients")
        pieces = self._flat.split(PIECE)
        wire = self._world.wire
        sent = pieces if wire is None else [piece.to(wire) for piece in pieces]
        for work in [dist.all_reduce(piece, async_op=True) for piece in sent]:
            work.wait()
        if wire is not None:
            torch._foreach_copy_(list(pieces), list(sent))
