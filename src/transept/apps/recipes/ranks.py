"""A recipe on several ranks: all ranks train, and rank 0 runs the other stages alone.

Rank 0 runs the stages as a single process would. Before it trains, it calls the other ranks, which
wait for that. At the end it dismisses them.
"""

from collections.abc import Sequence
from dataclasses import replace

from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.errors import keys_below
from transept.runtime.distributed import World
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


def train_together(run: RecipeRun, trained: float, observers: Sequence[Observer] = ()) -> Outcome:
    """Train on all ranks at once.

    Args:
        run: The same on all ranks.
        trained: The seconds that earlier commands trained.
        observers: Those of rank 0.
    """
    left = None if run.minutes is None else run.minutes - trained / 60
    with keys_below("experiment"):
        outcome = run.work.train(run.experiment(), left, observers, run.world)
    run.world.pulse.rest()
    return outcome
