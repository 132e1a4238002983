"""The second stage: training. Each command resumes from the newest checkpoint.

On several ranks, rank 0 runs the stages as a single process would. Before it trains, it signals the
other ranks, which wait for that. At the end it lets them exit.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from transept import assembly
from transept.apps.recipes.recipe import fingerprint
from transept.apps.recipes.records import Table
from transept.apps.recipes.run import RecipeRun
from transept.apps.recipes.stage import Stage, Watchers
from transept.data.config import CorpusConfig
from transept.data.shards import Corpus
from transept.errors import ConfigError, keys_below
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.runtime.distributed import World
from transept.training.batches import training_flops
from transept.training.observers import Observer
from transept.training.state import Progress
from transept.training.trainer import Outcome
from transept.wording import counted

COUNTS: Final = ("step", "seconds", "source_tokens", "target_tokens", "metric", "best_step", "best")
ROUNDING: Final = 0.01
"""The tolerance, in seconds, for the summed times of several commands."""


class Train(Stage):
    """Train from the newest checkpoint until the last step or the time limit."""

    name = "train"

    def inputs(self) -> Table:
        """The corpora and the settings."""
        prepared = self.run.results("prepare")
        if prepared is None:
            raise ConfigError(f"{self.run.directory}: nothing is prepared yet; run `prepare` first")
        experiment = self.run.recipe.experiment
        return {
            "corpora": {name: one["hash"] for name, one in prepared["corpora"].items()},
            "experiment": fingerprint(experiment),
            "minutes": self.run.minutes,
            "seed": experiment.training.seed,
        }

    def carry_out(self, watch: Watchers) -> Table:
        """Train the remaining steps. The results cover all commands."""
        earlier = self.run.results("train")
        outcome = self._outcome_of_a_killed_command() if self.is_whole() else self._train(watch)
        experiment, state = self.run.experiment(), self.run.state
        progress = Progress.from_json(state)
        return {
            "outcome": outcome,
            **{name: getattr(progress, name) for name in COUNTS},
            "device_seconds": device_seconds(earlier, state),
            "flops_per_target_token": flops_per_target_token(experiment),
            "sustained_flops": sustained_flops(experiment),
        }

    def summary(self, record: Table) -> str:
        """The number of steps, and how to continue if the time limit was reached."""
        results = record["results"]
        done = f"{counted(results['step'], 'step')} in {results['seconds']:,.0f} s"
        if results["outcome"] != "out of time":
            return done
        given = record["inputs"]["minutes"]
        return f"{done}, the limit of {given:g} minutes; a longer time, or inf, continues"

    def is_recorded(self, inputs: Table) -> bool:
        """Whether the record covers all steps. Inputs may differ, such as the time limit."""
        results = self.run.results("train")
        return results is not None and results["step"] >= self.run.state["step"]

    def is_whole(self) -> bool:
        """Whether training is complete: the last step or the time limit was reached."""
        results, run = self.run.results("train"), self.run
        if results is not None and results["outcome"] == "no longer improving":
            return True
        if run.minutes is not None and run.state["seconds"] >= 60 * run.minutes - ROUNDING:
            return True
        return int(run.state["step"]) >= run.recipe.experiment.training.max_steps

    def _train(self, watch: Watchers) -> Outcome:
        observers = watch.training(self.run.experiment())
        try:
            trained = self.run.state["seconds"]
            self.run.world.from_leader(lambda: {"minutes": self.run.minutes, "trained": trained})
            return _train_together(self.run, trained, observers)
        finally:
            for observer in observers:
                observer.close()

    def _outcome_of_a_killed_command(self) -> Outcome:
        """The outcome of a command that was killed between its last step and its record."""
        last = self.run.recipe.experiment.training.max_steps
        return "finished" if self.run.state["step"] >= last else "out of time"


# --- several ranks -----------------------------------------------------------------------------


def assist(run: RecipeRun) -> int:
    """Run on the other ranks: train whenever rank 0 does. Return the exit code."""
    while True:
        run.world.pulse.rest()
        order: Table = run.world.from_leader(dict)
        if "code" in order:
            return int(order["code"])
        _train_together(replace(run, minutes=order["minutes"]), order["trained"])


def dismiss_ranks(world: World, code: int) -> None:
    """Let the other ranks exit with this code. Called by rank 0."""
    world.from_leader(lambda: {"code": code})


def _train_together(run: RecipeRun, trained: float, observers: Sequence[Observer] = ()) -> Outcome:
    """Train on all ranks at once.

    Args:
        run: The same on all ranks.
        trained: The seconds that earlier commands trained.
        observers: Those of rank 0.
    """
    with keys_below("experiment"):
        outcome = assembly.train(
            run.experiment(),
            run.training,
            minutes=None if run.minutes is None else run.minutes - trained / 60,
            # `RecipeRun.begin` rejects another experiment. The remaining differences are allowed:
            # paths, on another machine, and steps, with a longer time limit.
            allow_change=True,
            observers=observers,
            world=run.world,
        )
    run.world.pulse.rest()
    return outcome


# --- training cost -----------------------------------------------------------------------------


def device_seconds(earlier: Table | None, state: Table) -> float:
    """Training time × number of devices, as in the paper, over all commands. One device per rank.

    Args:
        earlier: The results of earlier commands, if any.
        state: The state of the newest checkpoint.
    """
    seconds = 0.0 if earlier is None else earlier["seconds"]
    before = 0.0 if earlier is None else earlier.get("device_seconds", seconds)
    return float(before + state["ranks"] * (state["seconds"] - seconds))


def flops_per_target_token(experiment: Experiment) -> float:
    """The training FLOPs per target token, averaged over an epoch."""
    flops = tokens = 0.0
    for entry in experiment.data.train:
        sources, targets = _lengths(entry, experiment.batch.max_length)
        flops += entry.weight * training_flops(experiment.model, sources, targets)
        tokens += entry.weight * int(targets.sum())
    return flops / max(1.0, tokens)


def sustained_flops(experiment: Experiment) -> float:
    """Measured FLOP/s of large single-precision matrix products, as the paper rates a GPU."""
    return Runtime.choose(experiment.training.device, "fp32").matrix_peak()


def _lengths(entry: CorpusConfig, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    corpus = Corpus.open(entry.path)
    source, target = corpus.source_lengths, corpus.target_lengths
    fitting = (source <= longest) & (target <= longest)
    return source[fitting].astype(np.int64), target[fitting].astype(np.int64)
