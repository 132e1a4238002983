"""The root of every config: one experiment, from the network to the schedule."""

from dataclasses import dataclass, field

from transept.model.config import ModelConfig
from transept.training.config import AdamConfig, LossConfig, ScheduleConfig, TrainingConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """What a TOML file under `configs/` describes."""

    model: ModelConfig
    """The network, section 3."""
    loss: LossConfig = field(default_factory=LossConfig)
    """Label smoothing, section 5.4."""
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    """The learning rate, equation (3)."""
    adam: AdamConfig = field(default_factory=AdamConfig)
    """The optimizer, section 5.3."""
    training: TrainingConfig = field(default_factory=TrainingConfig)
    """How long, and from which random numbers."""
