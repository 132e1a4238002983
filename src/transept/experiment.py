"""The root of every config: one experiment, from the data to the schedule. No torch here."""

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

MEANS: Final = (
    "batch.micro_batches",
    "data.workers",
    "distributed.optimizer",
    "distributed.patience",
    "training.compile",
    "training.device",
    "training.kernels",
    "training.log_every",
)
"""By what means it is computed, and how it is watched. A run, or a recipe, that began with other
values of these goes on as the same experiment; with any other key changed it would be another one.

The bits may differ, as they do on another machine. `batch.micro_batches` packs the pairs of a
window otherwise: where it is changed in the midst of one, those that are left are packed anew.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """What a TOML file under `configs/` describes."""

    model: ModelConfig
    """The network, section 3."""
    data: DataConfig = field(default_factory=DataConfig)
    """The corpora, section 5.1."""
    batch: BatchConfig = field(default_factory=BatchConfig)
    """How pairs are put together into batches, section 5.1."""
    loss: LossConfig = field(default_factory=LossConfig)
    """Label smoothing, section 5.4."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """The learning rate, equation (3)."""
    adam: AdamConfig = field(default_factory=AdamConfig)
    """The optimizer, section 5.3."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """How long, on what, and from which random numbers."""
    distributed: DistributedConfig = field(default_factory=DistributedConfig)
    """How several ranks work together."""
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    """When the development set is looked at."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    """When checkpoints are written, and how many are kept."""
