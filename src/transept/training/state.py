"""What a resume needs besides the weights: progress, and the tensors of Adam."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from transept.data.batching.plan import Position
from transept.shapes import Tensor
from transept.training.ranks import gathered_moments, is_own, own_part
from transept.training.update import Update


@dataclass(slots=True)
class Progress:
    """Written to `state.json`. Random numbers follow from the seed and the step."""

    step: int = 0
    """Updates made."""
    position: Position = field(default_factory=Position)
    """The next batch's place in the data."""
    source_tokens: int = 0
    """Source tokens trained on, padding not counted."""
    target_tokens: int = 0
    """Target tokens trained on."""
    seconds: float = 0.0
    """Time spent training, over all resumes."""
    suppressed: int = 0
    """Steps left out because their gradient was not a number."""
    best_step: int | None = None
    """The step with the best validation so far."""
    best_nll: float = math.inf
    """That validation's −log p per token."""
    stale_validations: int = 0
    """Validations since then."""
    regular: bool = True
    """Whether it is saved at a regular interval or at the run's end. Those are averaged; what the
    best validation or a signal left is not."""
    regular_seconds: float = 0.0
    """`seconds` at the last checkpoint that was regular."""
    threads: int = 0
    """Threads of the CPU: another number of them adds in another order, and gives other bits."""
    ranks: int = 1
    """Processes that trained together: their gradients are added in another order too."""
    device: str = ""
    """What it was computed on; another device gives other bits too."""
    torch: str = ""
    """The version of torch."""

    def forget_best(self) -> None:
        """Look for the best validation anew: those so far cannot be compared with what comes."""
        self.best_step, self.best_nll, self.stale_validations = None, math.inf, 0

    def as_json(self) -> dict[str, Any]:
        """As values of JSON, which knows no infinity."""
        table = dataclasses.asdict(self)
        table["best_nll"] = None if math.isinf(self.best_nll) else self.best_nll
        return table

    @classmethod
    def from_json(cls, table: dict[str, Any]) -> "Progress":
        """What `as_json` gave."""
        best = table["best_nll"]
        position = Position(**table["position"])
        return cls(**table | {"position": position, "best_nll": math.inf if best is None else best})


MEAN, SQUARE, COUNT = "adam.mean.", "adam.square.", "adam.count"
RAW = "raw."


def training_tensors(update: Update) -> dict[str, Tensor]:
    """Adam's moments and its count of steps; with a moving average, the weights behind it too.

    All ranks must ask; rank 0 is given all of it.
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
    """Put back what `training_tensors` gave. The network already holds the bundle's weights."""
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
