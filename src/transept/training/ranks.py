"""Training on several ranks: gradients summed over them, Adam's moments shared out among them.

Gradients are summed while the backward pass still runs, where that is possible. Moments are kept
by every rank, or each rank keeps its share (ZeRO, stage 1).
"""

import inspect
import warnings
from collections.abc import Iterator, Sequence
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

    Outside of its `no_sync`, each rank must call it equally often.
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


Moments = dict[str, Tensor]
"""What Adam keeps of a parameter: `exp_avg`, `exp_avg_sq` and `step`."""


def shard(parameters: Sequence[torch.nn.Parameter], **settings: Any) -> torch.optim.Optimizer:
    """Adam whose moments are shared out: each rank moves its parameters and sends them around."""
    with warnings.catch_warnings():
        # torch's module of distributed optimizers still compiles some that nobody asked for.
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch.distributed.optim import ZeroRedundancyOptimizer
    return ZeroRedundancyOptimizer(parameters, torch.optim.Adam, **settings)


def own_part(adam: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer that moves this rank's share of the parameters: itself, if it moves all."""
    part: torch.optim.Optimizer = getattr(adam, "optim", adam)
    return part


def is_own(adam: torch.optim.Optimizer, parameter: torch.nn.Parameter) -> bool:
    """Whether this rank keeps a parameter's moments."""
    groups = own_part(adam).param_groups
    return any(parameter is ours for group in groups for ours in group["params"])


def gathered_moments(
    adam: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter], world: World
) -> Iterator[Moments]:
    """The moments of each parameter, whoever keeps them; whole on rank 0, which alone needs them.

    All ranks must ask.
    """
    state = own_part(adam).state
    owns = [is_own(adam, parameter) for parameter in parameters]
    if all(owns):
        yield from (state[parameter] for parameter in parameters)
        return
    owners = world.total(torch.tensor([world.rank if own else 0 for own in owns])).tolist()
    count = next(iter(state.values()))["step"]
    for parameter, owner in zip(parameters, owners, strict=True):
        kept = state.get(parameter, {})
        yield {
            "step": count,
            **{
                name: _to_leader(kept.get(name), parameter, owner, world)
                for name in ("exp_avg", "exp_avg_sq")
            },
        }


def _to_leader(
    kept: Float[Tensor, "..."] | None, parameter: Tensor, owner: int, world: World
) -> Float[Tensor, "..."]:
    moment = torch.zeros_like(parameter, device="cpu") if kept is None else kept.cpu()
    if owner != 0 and world.rank == 0:
        torch.distributed.recv(moment, owner)
    elif owner != 0 and world.rank == owner:
        torch.distributed.send(moment, 0)
    return moment
