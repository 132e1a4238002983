"""A recipe on several ranks: all of them train, rank 0 does the other stages by itself.

Rank 0 goes through the stages as a process by itself would. Before it trains it calls the others,
which wait for that, and at the end it dismisses them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from transept.errors import keys_below
from transept.recipes.records import Table
from transept.recipes.run import RecipeRun
from transept.runtime.device import Runtime
from transept.runtime.distributed import World
from transept.runtime.power import PowerMeter
from transept.training.observers import Observer
from transept.training.trainer import Outcome


def call_ranks(run: RecipeRun) -> None:
    """Rank 0 lets the others train with it."""
    order: Table = {"minutes": run.minutes, "trained": run.work.trained.seconds}
    run.world.from_leader(lambda: order)


def dismiss_ranks(world: World, code: int) -> None:
    """Rank 0 lets the others end, with this exit code."""
    world.from_leader(lambda: {"code": code})


def assist(run: RecipeRun) -> int:
    """The work of the other ranks: train whenever rank 0 calls; return the exit code."""
    while True:
        run.world.pulse.rest()
        order: Table = run.world.from_leader(dict)
        if "code" in order:
            return int(order["code"])
        train_together(replace(run, minutes=order["minutes"]), order["trained"])


def train_together(
    run: RecipeRun, trained: float, observers: Sequence[Observer] = ()
) -> tuple[Outcome, float | None]:
    """Train on all ranks at once; return the outcome, and the energy that all devices took.

    Args:
        run: The same on all ranks.
        trained: The seconds of earlier sittings.
        observers: Those of rank 0.
    """
    experiment, world = run.experiment(), run.world
    left = None if run.minutes is None else run.minutes - trained / 60
    with keys_below("experiment.training"):
        device = Runtime.choose(experiment.training.device, world=world).device
    with PowerMeter(device) as power, keys_below("experiment"):
        outcome = run.work.train(experiment, left, observers, world)
    joules = _total(world, power.joules)
    world.pulse.rest()
    return outcome, joules


def _total(world: World, joules: float | None) -> float | None:
    """The sum over all ranks; None where one of them has measured nothing."""
    world.pulse.at("agreeing")
    total = float(world.total(torch.tensor(math.nan if joules is None else joules)))
    return None if math.isnan(total) else total
