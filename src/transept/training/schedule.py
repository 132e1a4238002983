"""The learning rate, equation (3)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """lrate = d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5): up, then down."""

    d_model: int
    warmup_steps: int = 4000
    factor: float = 1.0

    def __call__(self, step: int) -> float:
        """The learning rate of a step; the first step is 1."""
        rate: float = self.d_model**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)
        return self.factor * rate
