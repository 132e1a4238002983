"""Adam's moments, kept by every rank or shared out among them (ZeRO, stage 1)."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from transept.runtime.distributed import World
from transept.shapes import Float, Tensor

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
