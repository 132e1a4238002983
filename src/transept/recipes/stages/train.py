"""The second stage: training. Each command may do a part of it, which is called a sitting."""

import time

from transept.errors import ConfigError
from transept.recipes.cost import flops_per_target_token, sustained_single_precision
from transept.recipes.ranks import call_ranks, train_together
from transept.recipes.recipe import fingerprint
from transept.recipes.records import Table, provenance
from transept.recipes.stages.stage import Stage
from transept.recipes.watchers import Watchers
from transept.training.trainer import Outcome
from transept.wording import counted

COUNTS = ("step", "seconds", "source_tokens", "target_tokens", "best_step", "best_nll")


class Train(Stage):
    """Train from where an earlier sitting stopped, to the last step or until time is up."""

    name = "train"

    def inputs(self) -> Table:
        """The corpora and the settings."""
        prepared = self.run.results("prepare")
        if prepared is None:
            raise ConfigError(
                f"{self.run.directory}: nothing is prepared yet; begin with `prepare`"
            )
        experiment = self.run.recipe.experiment
        return {
            "corpora": {name: one["hash"] for name, one in prepared["corpora"].items()},
            "experiment": fingerprint(experiment),
            "minutes": self.run.minutes,
            "seed": experiment.training.seed,
        }

    def carry_out(self, watch: Watchers) -> Table:
        """Train in one more sitting, and add it to those of the record."""
        earlier = self.run.results("train")
        outcome, sitting = self._lost() if self.is_whole() else self._sit(watch)
        experiment, state = self.run.experiment(), self.run.work.state
        assert state is not None
        return {
            "outcome": outcome,
            **{name: state[name] for name in COUNTS},
            "device_seconds": device_seconds(earlier, state),
            "flops_per_target_token": flops_per_target_token(experiment),
            "sustained_flops": sustained_single_precision(experiment.training.device),
            "sittings": [*(earlier["sittings"] if earlier else []), sitting],
        }

    def summary(self, record: Table) -> str:
        """How far it went; and how to train on, if only its time was over."""
        results = record["results"]
        done = f"{counted(results['step'], 'step')} in {results['seconds']:,.0f} s"
        if results["outcome"] != "out of time":
            return done
        given = record["inputs"]["minutes"]
        return f"{done}, as --minutes {given:g} says; a longer time, or inf, trains on"

    def is_recorded(self, inputs: Table) -> bool:
        """Whether the record has all steps. Inputs may differ: training may be given more time."""
        results = self.run.results("train")
        return results is not None and results["step"] >= self.run.work.trained.step

    def is_whole(self) -> bool:
        """Whether there is nothing left to train."""
        results = self.run.results("train")
        if results is not None and results["outcome"] == "no longer improving":
            return True
        return self.run.work.is_trained(self.run.experiment(), self.run.minutes)

    def _sit(self, watch: Watchers) -> tuple[Outcome, Table]:
        """Train, and measure what that takes."""
        before = self.run.work.trained
        begin = time.monotonic()
        observers = watch.training(self.run.experiment())
        try:
            call_ranks(self.run)
            outcome, joules = train_together(self.run, before.seconds, observers)
        finally:
            for observer in observers:
                observer.close()
        return outcome, {
            "from_step": before.step,
            "to_step": self.run.work.trained.step,
            "wall_seconds": time.monotonic() - begin,
            "joules": joules,
            "by": provenance(),
        }

    def _lost(self) -> tuple[Outcome, Table]:
        """What is known of a sitting that was killed after its last step, before its record."""
        results = self.run.results("train")
        step = self.run.work.trained.step
        last = self.run.recipe.experiment.training.max_steps
        return "finished" if step >= last else "out of time", {
            "from_step": 0 if results is None else results["step"],
            "to_step": step,
            "wall_seconds": None,
            "joules": None,
            "by": provenance(),
        }


def device_seconds(earlier: Table | None, state: Table) -> float:
    """The paper's training time × number of devices, over all sittings: each rank has a device.

    Args:
        earlier: The results of the sittings before, if there were any.
        state: How far the newest checkpoint is.
    """
    seconds = 0.0 if earlier is None else earlier["seconds"]
    before = 0.0 if earlier is None else earlier.get("device_seconds", seconds)
    return float(before + state["ranks"] * (state["seconds"] - seconds))
