"""The second stage: training. Each command continues from the newest checkpoint."""

import numpy as np
from numpy.typing import NDArray

from transept.apps.recipes.ranks import call_ranks, train_together
from transept.apps.recipes.recipe import fingerprint
from transept.apps.recipes.records import Table
from transept.apps.recipes.stages.stage import Stage, Watchers
from transept.data.config import CorpusConfig
from transept.data.shards import Corpus
from transept.errors import ConfigError
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.training.batches import training_flops
from transept.training.trainer import Outcome
from transept.wording import counted

COUNTS = ("step", "seconds", "source_tokens", "target_tokens", "best_step", "best_nll")


class Train(Stage):
    """Train from the newest checkpoint to the last step or until the time is over."""

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
        """Train the remaining steps; the results count those of all commands."""
        earlier = self.run.results("train")
        outcome = self._outcome_of_a_killed_command() if self.is_whole() else self._train(watch)
        experiment, state = self.run.experiment(), self.run.work.state
        assert state is not None
        return {
            "outcome": outcome,
            **{name: state[name] for name in COUNTS},
            "device_seconds": device_seconds(earlier, state),
            "flops_per_target_token": flops_per_target_token(experiment),
            "sustained_flops": sustained_flops(experiment),
        }

    def summary(self, record: Table) -> str:
        """The number of steps; and how to continue, if only the time was over."""
        results = record["results"]
        done = f"{counted(results['step'], 'step')} in {results['seconds']:,.0f} s"
        if results["outcome"] != "out of time":
            return done
        given = record["inputs"]["minutes"]
        return f"{done}, as --minutes {given:g} says; a longer time, or inf, continues"

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

    def _train(self, watch: Watchers) -> Outcome:
        observers = watch.training(self.run.experiment())
        try:
            call_ranks(self.run)
            return train_together(self.run, self.run.work.trained.seconds, observers)
        finally:
            for observer in observers:
                observer.close()

    def _outcome_of_a_killed_command(self) -> Outcome:
        """The outcome of a command that was killed after its last step, before its record."""
        last = self.run.recipe.experiment.training.max_steps
        return "finished" if self.run.work.trained.step >= last else "out of time"


def device_seconds(earlier: Table | None, state: Table) -> float:
    """The paper's training time × number of devices, over all commands: each rank has a device.

    Args:
        earlier: The results of the commands before, if there were any.
        state: The state of the newest checkpoint.
    """
    seconds = 0.0 if earlier is None else earlier["seconds"]
    before = 0.0 if earlier is None else earlier.get("device_seconds", seconds)
    return float(before + state["ranks"] * (state["seconds"] - seconds))


def flops_per_target_token(experiment: Experiment) -> float:
    """The FLOPs that training needs per target token, on average over an epoch."""
    flops = tokens = 0.0
    for entry in experiment.data.train:
        sources, targets = _lengths(entry, experiment.batch.max_length)
        flops += entry.weight * training_flops(experiment.model, sources, targets)
        tokens += entry.weight * int(targets.sum())
    return flops / max(1.0, tokens)


def sustained_flops(experiment: Experiment) -> float:
    """FLOP/s of large matrices in single precision, measured: the paper's estimate of a GPU."""
    return Runtime.choose(experiment.training.device, "fp32").matrix_peak()


def _lengths(entry: CorpusConfig, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    corpus = Corpus.open(entry.path)
    source, target = corpus.source_lengths, corpus.target_lengths
    fitting = (source <= longest) & (target <= longest)
    return source[fitting].astype(np.int64), target[fitting].astype(np.int64)
