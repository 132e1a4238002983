"""What section 5 fixes about training. No torch here, so that reading a config costs nothing."""

from dataclasses import dataclass
from typing import Literal

from transept.config import Checks


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """Section 5.4: cross-entropy against smoothed targets."""

    label_smoothing: float = 0.1
    """ε_ls: the share of the target's probability that is spread over the vocabulary."""
    smoothing: Literal["uniform", "wrong-only"] = "uniform"
    """Over all V tokens, ε/V each; or over the V − 1 wrong ones, as in tensor2tensor."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.fraction("label_smoothing")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleConfig:
    """Equation (3)."""

    warmup_steps: int = 4000
    """Steps over which the learning rate rises before it falls."""
    factor: float = 1.0
    """Multiplies the whole schedule: 1 in the paper, 2 in the Annotated Transformer."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "warmup_steps")
        checks.that(self.factor > 0, "factor", "must be more than 0")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamConfig:
    """Section 5.3."""

    beta1: float = 0.9
    """Decay of the mean gradient."""
    beta2: float = 0.98
    """Decay of the mean squared gradient."""
    epsilon: float = 1e-9
    """Added to the root of the mean squared gradient."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.fraction("beta1", "beta2")
        checks.that(self.epsilon > 0, "epsilon", "must be more than 0")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """How long, and from which random numbers."""

    max_steps: int = 100_000
    """Updates of the weights: 100,000 for base, 300,000 for big."""
    seed: int = 1
    """Initial weights, dropout and the order of the data follow from it."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "max_steps")
        checks.at_least(0, "seed")
        checks.done()
