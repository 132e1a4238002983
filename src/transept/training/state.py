"""Data that a resume needs in addition to the weights: progress and Adam's tensors."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from transept.data.batching.plan import Position
from transept.shapes import Tensor
from transept.training.config import Metric
from transept.training.ranks import gathered_moments, is_own, own_part
from transept.training.update import Update


@dataclass(slots=True)
class Progress:
    """The progress of a run, stored in `state.json`.

    It holds no random state: random numbers are derived from the seed and the step.
    """

    step: int = 0
    """Completed updates."""
    position: Position = field(default_factory=Position)
    """Position of the next batch in the data."""
    source_tokens: int = 0
    """Source tokens trained on, padding not counted."""
    target_tokens: int = 0
    """Target tokens trained on."""
    seconds: float = 0.0
    """Training time, resumes included."""
    suppressed: int = 0
    """Steps skipped because their gradient was not finite."""
    best_step: int | None = None
    """The step with the best value of `metric` so far."""
    best: float | None = None
    """That value."""
    metric: Metric = "nll"
    """`validation.metric`."""
    stale_validations: int = 0
    """Values of `metric` since then."""
    regular: bool = True
    """Whether the checkpoint was saved at a regular interval or at the end of the run. Only regular
    checkpoints are averaged, not those saved for the best validation or after a signal."""
    regular_seconds: float = 0.0
    """`seconds` at the last regular checkpoint."""
    threads: int = 0
    """CPU threads. Another number changes the order of sums, and so the last bits of results."""
    ranks: int = 1
    """Ranks. Another number also changes the order of sums."""
    device: str = ""
    """The device. Another device also changes the last bits of results."""
    torch: str = ""
    """The version of torch."""

    def is_best(self, metric: Metric, value: float) -> bool:
        """Whether this value of the step is the best so far. Other metrics are ignored.

        −log p improves by falling, BLEU and chrF by rising. NaN never improves.
        """
        if metric != self.metric:
            return False
        sign = -1 if metric == "nll" else 1
        best = -math.inf if self.best is None else sign * self.best
        if sign * value > best:
            self.best_step, self.best, self.stale_validations = self.step, value, 0
            return True
        self.stale_validations += 1
        return False

    def forget_best(self) -> None:
        """Reset the best value: earlier ones are not comparable with later ones."""
        self.best_step, self.best, self.stale_validations = None, None, 0

    def as_json(self) -> dict[str, Any]:
        """A JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "Progress":
        """The inverse of `as_json`."""
        values = {**table, "position": Position(**table["position"])}
        if "best_nll" in values:  # the first versions had no other metric
            values["best"] = values.pop("best_nll")
        return cls(**values)


MEAN, SQUARE, COUNT = "adam.mean.", "adam.square.", "adam.count"
RAW = "raw."


def training_tensors(update: Update) -> dict[str, Tensor]:
    """Adam's moments and step count; with a moving average, also the raw weights.

    All ranks must call this function. The result is complete only on rank 0.
    """
    tensors: dict[str, Tensor] = {}
    named = dict(update.model.named_parameters())
    moments = gathered_moments(update.adam, list(named.values()), update.runtime.world)
    for (name, parameter), state in zip(named.items(), moments, strict=True):
        tensors[MEAN + name] = state["exp_avg"]
        tensors[SQUARE + name] = state["exp_avg_sq"]
        tensors[COUNT] = state["step"]
        if update.ema is not None:
            tensors[RAW + name] = parameter.detach()
    return tensors


def restore_training_tensors(update: Update, tensors: Mapping[str, Tensor]) -> None:
    """Restore the output of `training_tensors`. The network must already hold the weights."""
    for name, parameter in update.model.named_parameters():
        if is_own(update.adam, parameter):
            own_part(update.adam).state[parameter] = {
                "step": tensors[COUNT].to(parameter.device, copy=True),
                "exp_avg": tensors[MEAN + name].to(parameter.device),
                "exp_avg_sq": tensors[SQUARE + name].to(parameter.device),
            }
        if update.ema is not None:
            with torch.no_grad():
                update.ema.weights[name].copy_(parameter)
                parameter.copy_(tensors[RAW + name])
