"""Training on several ranks: summing gradients over ranks and sharding Adam's moments.

Gradients are summed during the backward pass where possible. Each rank stores all moments, or only
its share (ZeRO, stage 1).
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

CHUNK = 1 << 24
"""Elements summed over ranks per call."""
ALIGNMENT = 64
"""Each gradient starts at a multiple of this many elements in the flat buffer."""


def replicate(module: nn.Module, world: World) -> nn.Module:
    """A module whose backward pass sums the gradients of all ranks, on every rank.

    Outside its `no_sync` context, each rank must call it the same number of times.
    """
    if not world.joined:
        return module
    ddp = nn.parallel.DistributedDataParallel
    # Do not synchronize the tables of sinusoids: their length depends on the rank's sentences.
    known = inspect.signature(ddp).parameters
    keep = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    settings: dict[str, Any] = {"gradient_as_bucket_view": True, keep: False}
    replica = ddp(module, **settings)
    replica.register_comm_hook(world, _sum_over_ranks)
    return replica


def _sum_over_ranks(state: object, bucket: GradBucket) -> Future[torch.Tensor]:
    """A communication hook for DDP: sum a bucket of gradients instead of averaging it.

    The loss is already divided by the number of target tokens of all ranks.
    """
    world = cast(World, state)
    world.pulse.at("reducing gradients")
    buffer = bucket.buffer()
    sent = buffer if world.wire is None else buffer.to(world.wire)

    def received(future: Future[list[Tensor]]) -> Tensor:
        total = future.value()[0]
        return total if world.wire is None else buffer.copy_(total)

    future: Future[list[Tensor]] = dist.all_reduce(sent, async_op=True).get_future()
    return future.then(received)


class FlatGradients:
    """All gradients in one contiguous buffer, for gradients not computed by autograd."""

    def __init__(self, parameters: Sequence[Float[Tensor, "..."]], world: World) -> None:
        self._world = world
        sizes = [-(-parameter.numel() // ALIGNMENT) * ALIGNMENT for parameter in parameters]
        self._flat = torch.zeros(sum(sizes), device=parameters[0].device)
        for parameter, part in zip(parameters, self._flat.split(sizes), strict=True):
            parameter.grad = part[: parameter.numel()].view_as(parameter)

    def total(self) -> None:
        """Sum the gradients over all ranks."""
        self._world.pulse.at("reducing gradients")
        chunks = self._flat.split(CHUNK)
        wire = self._world.wire
        sent = chunks if wire is None else [chunk.to(wire) for chunk in chunks]
        for work in [dist.all_reduce(chunk, async_op=True) for chunk in sent]:
            work.wait()
        if wire is not None:
            torch._foreach_copy_(list(chunks), list(sent))


Moments = dict[str, Tensor]
"""Adam's state of a parameter: `exp_avg`, `exp_avg_sq` and `step`."""


def shard(parameters: Sequence[torch.nn.Parameter], **settings: Any) -> torch.optim.Optimizer:
    """Adam with sharded moments: each rank updates its parameters and broadcasts them."""
    with warnings.catch_warnings():
        # The import also compiles deprecated optimizers, which emit warnings.
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch.distributed.optim import ZeroRedundancyOptimizer
    return ZeroRedundancyOptimizer(parameters, torch.optim.Adam, **settings)


def own_part(adam: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer of this rank's share of the parameters: `adam` itself if it is not sharded."""
    part: torch.optim.Optimizer = getattr(adam, "optim", adam)
    return part


def is_own(adam: torch.optim.Optimizer, parameter: torch.nn.Parameter) -> bool:
    """Whether this rank stores the moments of a parameter."""
    groups = own_part(adam).param_groups
    return any(parameter is ours for group in groups for ours in group["params"])


def gathered_moments(
    adam: torch.optim.Optimizer, parameters: Sequence[torch.nn.Parameter], world: World
) -> Iterator[Moments]:
    """The moments of each parameter, gathered on rank 0.

    All ranks must call this function. The moments are complete only on rank 0.
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
