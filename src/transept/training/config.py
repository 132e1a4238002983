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
    """Over all V tokens, ε/V each; or over the V − 1 wrong ones, as in tensor2tensor. Padding is no
    token here."""

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
    """How long, on what, and from which random numbers."""

    max_steps: int = 100_000
    """Updates of the weights: 100,000 for base, 300,000 for big."""
    seed: int = 1
    """Initial weights, dropout and the order of the data follow from it."""
    clip_norm: float | None = None
    """The gradient is scaled down to this norm where it is longer. The paper does not."""
    ema_decay: float | None = None
    """Decay of a moving average of the weights, which then is the model. The paper has none."""
    max_suppressed: int = 5
    """A step whose gradient is not a number is left out; after so many in a row training stops."""
    log_every: int = 10
    """Steps between two lines of the log, and between two looks at the device. The first step has a
    line, too: ten may take a minute."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda, cuda:1."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Arithmetic of the matrices: bf16 on a GPU, fp32 on a CPU."""
    kernels: Literal["auto", "plain"] = "auto"
    """Our own kernels on a GPU, where they know the network; or PyTorch's everywhere."""
    sums: Literal["fast", "ordered"] = "fast"
    """Whether a GPU adds in whatever order is quickest; or always in one, so that the same steps
    give the same bits. A CPU always does."""
    compile: Literal["auto", "never", "always"] = "auto"
    """Whether torch.compile makes PyTorch's kernels faster: on a GPU it does, on a CPU not."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "max_steps", "log_every", "max_suppressed")
        checks.at_least(0, "seed")
        clip, decay = self.clip_norm, self.ema_decay
        checks.that(clip is None or clip > 0, "clip_norm", "must be more than 0, or left out")
        checks.that(
            decay is None or 0 < decay < 1, "ema_decay", "must lie between 0 and 1, or be left out"
        )
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class DistributedConfig:
    """What matters where torchrun starts several ranks; a process by itself ignores it."""

    gradients: Literal["full", "bf16"] = "full"
    """In what gradients travel between ranks: as they are, or rounded to half the bytes."""
    optimizer: Literal["whole", "sharded"] = "whole"
    """Whether each rank keeps all of Adam's moments, or its share of them (ZeRO)."""
    patience: float = 600.0
    """Seconds after which a rank that stands still is named and all are ended."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(self.patience > 0, "patience", "must be more than 0")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationConfig:
    """How often the development set is looked at, and when to give up."""

    every_steps: int = 1000
    """Steps between two validations."""
    patience: int | None = None
    """Stop after so many validations in a row without a better one. None: never."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "every_steps")
        patience = self.patience
        checks.that(
            patience is None or patience >= 1, "patience", "must be at least 1, or left out"
        )
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointConfig:
    """When checkpoints are written and how many are kept (section 6.1).

    At regular intervals, and at the end: those are averaged. One more is written where the best
    validation so far was, and one where a signal stops the run; the mean is without them, and so
    the same whether or not a run was interrupted.
    """

    every_minutes: float | None = None
    """Minutes of training between two checkpoints. None: by `every_steps` alone where that is
    given; else `every_share` of the run."""
    every_share: float = 1 / 72
    """The share of the run between two checkpoints: the paper's ten minutes of base's twelve hours;
    0.002 for big, which took three and a half days. At least a quarter of a minute, at most ten
    minutes."""
    every_steps: int | None = None
    """Write one at each multiple of so many steps. With `every_minutes`, by both."""
    after_minutes: float = 0.0
    """Write none before so many minutes of training, but when it is stopped. Where time is short
    and only the last checkpoints will be averaged, the others are not worth theirs."""
    keep: int = 5
    """The newest so many at regular intervals are kept, and the best, and the very newest. The
    paper averages 5 (base) or 20 (big)."""

    def seconds_between(self, whole_run: float) -> float:
        """The seconds between two checkpoints in a run that takes `whole_run` seconds."""
        if self.every_minutes is not None:
            return 60 * self.every_minutes
        return min(max(self.every_share * whole_run, 15.0), 600.0)

    @property
    def by_clock(self) -> bool:
        """Whether some are written because of the time."""
        return self.every_minutes is not None or self.every_steps is None

    def __post_init__(self) -> None:
        checks = Checks(self)
        minutes = self.every_minutes
        checks.that(
            minutes is None or minutes > 0, "every_minutes", "must be more than 0, or left out"
        )
        checks.that(0 < self.every_share <= 1, "every_share", "must be more than 0 and at most 1")
        checks.at_least(1, "keep")
        checks.at_least(0, "after_minutes")
        steps = self.every_steps
        checks.that(steps is None or steps >= 1, "every_steps", "must be at least 1, or left out")
        checks.done()
