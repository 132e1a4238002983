"""Solution of exercise 11. In the package: `transept.training.update.Schedule`."""


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Return the learning rate of a step, equation (3)."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
