"""The root of every config: one experiment. Does not import torch."""

from dataclasses import dataclass, field
from typing import Final

from transept.data.config import BatchConfig, DataConfig
from transept.model.config import ModelConfig
from transept.training.config import (
    AdamConfig,
    CheckpointConfig,
    DistributedConfig,
    LossConfig,
    ScheduleConfig,
    TrainingConfig,
    ValidationConfig,
)

EXECUTION_KEYS: Final = (
    "batch.micro_batches",
    "data.workers",
    "distributed.optimizer",
    "distributed.patience",
    "training.compile",
    "training.device",
    "training.kernels",
    "training.log_every",
    "validation.samples",
)
"""Keys that determine how an experiment is computed and logged, not what it computes. A run or a
recipe may resume with other values of these keys, but not of any other key.

The results may differ in rounding, as they do on another machine. `batch.micro_batches` affects how
the pairs of a window are packed: if it changes mid-window, the remaining pairs are repacked.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """The contents of a TOML file in `configs/`."""

    model: ModelConfig
    """The network, section 3."""
    data: DataConfig = field(default_factory=DataConfig)
    """The corpora, section 5.1."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How pairs are grouped into batches, section 5.1."""
    loss: LossConfig = field(default_factory=LossConfig)
    """Label smoothing, section 5.4."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """The learning rate, equation (3)."""
    adam: AdamConfig = field(default_factory=AdamConfig)
    """The optimizer, section 5.3."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """Duration, device and random seed."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)
    """Training on several ranks."""
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    """When to evaluate on the development set."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """When to write checkpoints, and how many to keep."""
