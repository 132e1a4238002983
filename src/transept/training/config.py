"""Options of training, section 5. Does not import torch, so that reading a config is fast."""

from dataclasses import dataclass
from typing import Literal

from transept.config import Checks

Metric = Literal["nll", "bleu", "chrf"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LossConfig:
    """Section 5.4: cross-entropy with label smoothing."""

    label_smoothing: float = 0.1
    """ε_ls: the share of the target probability that is spread over the vocabulary."""
    smoothing: Literal["uniform", "wrong-only"] = "uniform"
    """Spread ε over all V tokens, or over the V − 1 wrong ones, as in tensor2tensor. V does not
    count padding."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.fraction("label_smoothing")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleConfig:
    """The learning rate, equation (3)."""

    warmup_steps: int = 4000
    """Steps during which the learning rate rises, before it falls."""
    factor: float = 1.0
    """Multiplies the whole schedule: 1 in the paper, 2 in the Annotated Transformer."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "warmup_steps")
        checks.that(self.factor > 0, "factor", "must be more than 0")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamConfig:
    """The Adam optimizer, section 5.3."""

    beta1: float = 0.9
    """Decay of the mean gradient."""
    beta2: float = 0.98
    """Decay of the mean squared gradient."""
    epsilon: float = 1e-9
    """Added to the square root of the mean squared gradient."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.fraction("beta1", "beta2")
        checks.that(self.epsilon > 0, "epsilon", "must be more than 0")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """Length, device, precision and random seed of a training."""

    max_steps: int = 100_000
    """Number of weight updates: 100,000 for base, 300,000 for big."""
    seed: int = 1
    """Determines the initial weights, dropout and the order of the data."""
    clip_norm: float | None = None
    """Maximum norm of the gradient; larger gradients are scaled down. The paper does not clip."""
    ema_decay: float | None = None
    """Decay of an exponential moving average of the weights, which is then used as the model. The
    paper does not use one."""
    max_suppressed: int = 5
    """Steps with a non-finite gradient are skipped. Training stops after this many in a row."""
    log_every: int = 10
    """Steps between two log lines; only then are values read from the device. The first step is
    also logged, because ten steps may take a minute."""
    device: str = "auto"
    """The device to train on: auto, cpu, cuda, cuda:1."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Type of matrix products. auto: bf16 (mixed precision) on a GPU, fp32 on a CPU."""
    kernels: Literal["auto", "plain"] = "auto"
    """auto: the built-in GPU kernels where they support the network. plain: only PyTorch's."""
    sums: Literal["fast", "ordered"] = "fast"
    """fast: a GPU sums in any order. ordered: always in the same order, so that the same steps give
    the same bits. A CPU always does."""
    compile: Literal["auto", "never", "always"] = "auto"
    """Whether to compile PyTorch's kernels with torch.compile. auto: on a GPU, not on a CPU."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "max_steps", "log_every", "max_suppressed")
        checks.at_least(0, "seed")
        clip, decay = self.clip_norm, self.ema_decay
        checks.that(clip is None or clip > 0, "clip_norm", "must be more than 0, or left out")
        checks.that(
            decay is None or 0 < decay < 1, "ema_decay", "must be between 0 and 1, or left out"
        )
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class DistributedConfig:
    """Options for several ranks started by torchrun; a single process ignores them."""

    gradients: Literal["full", "bf16"] = "full"
    """Precision of gradients sent between ranks: unchanged, or rounded to bf16."""
    optimizer: Literal["whole", "sharded"] = "whole"
    """Whether each rank stores all of Adam's moments, or only its share (ZeRO)."""
    patience: float = 600.0
    """Seconds without progress after which the hanging rank is reported and all ranks exit."""

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.that(self.patience > 0, "patience", "must be more than 0")
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidationConfig:
    """How often to evaluate on the development set, and early stopping."""

    every_steps: int = 1000
    """Steps between two validations."""
    bleu_every_steps: int | None = None
    """Steps between two translations of the development set, which are scored by BLEU and chrF.
    None: never."""
    bleu_sentences: int = 500
    """Maximum number of sentences to translate, evenly spaced in the development set. 0: all."""
    bleu_beam_size: int = 1
    """Beam size of these translations. Greedy search, 1, is much faster than 4 and shows the same
    progress, with slightly lower scores."""
    samples: int = 3
    """Number of these translations to log, with source and reference."""
    metric: Metric = "nll"
    """What decides on the best checkpoint and on early stopping: −log p per token, BLEU or chrF."""
    patience: int | None = None
    """Early stopping: stop after this many values of `metric` without improvement. None: never."""

    @property
    def measure(self) -> str:
        """What exactly `metric` measures. Values of two measures are not comparable."""
        if self.metric == "nll":
            return self.metric
        sentences = self.bleu_sentences or "all"
        return f"{self.metric} of {sentences} sentences with beam size {self.bleu_beam_size}"

    def __post_init__(self) -> None:
        checks = Checks(self)
        checks.at_least(1, "every_steps", "bleu_beam_size")
        checks.at_least(0, "bleu_sentences", "samples")
        for key in ("bleu_every_steps", "patience"):
            value = getattr(self, key)
            checks.that(value is None or value >= 1, key, "must be at least 1, or left out")
        checks.that(
            self.metric == "nll" or self.bleu_every_steps is not None,
            "metric",
            "is never computed; set bleu_every_steps",
        )
        checks.done()


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointConfig:
    """When to write checkpoints and how many to keep (section 6.1).

    Regular checkpoints are written at regular intervals and at the end; these are averaged. One
    more is written after the best validation so far, and one if a signal stops the run. They are
    not averaged, so that the average does not depend on interruptions.
    """

    every_minutes: float | None = None
    """Minutes of training between two checkpoints. None: use only `every_steps` if it is set, else
    `every_share`."""
    every_share: float = 1 / 72
    """The share of the run between two checkpoints. The paper saves every ten minutes of twelve
    hours (base: 1/72) or of three and a half days (big: 0.002). The interval is at least a quarter
    of a minute and at most ten minutes."""
    every_steps: int | None = None
    """Write a checkpoint every N steps. Can be combined with `every_minutes`."""
    after_minutes: float = 0.0
    """Write no checkpoints during the first N minutes, except when stopped. Saves time in short
    runs in which only the last checkpoints are averaged."""
    keep: int = 5
    """How many regular checkpoints to keep, in addition to the best and the newest one. The paper
    averages 5 (base) or 20 (big)."""

    def seconds_between(self, whole_run: float) -> float:
        """The seconds between two checkpoints in a run that takes `whole_run` seconds."""
        if self.every_minutes is not None:
            return 60 * self.every_minutes
        return min(max(self.every_share * whole_run, 15.0), 600.0)

    @property
    def by_clock(self) -> bool:
        """Whether checkpoints are written at intervals of time."""
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
