"""Exercise 11: the learning rate (section 5.3, equation 3).

    lrate = d_model^−0.5 · min(step^−0.5, step · warmup_steps^−1.5)

The rate rises linearly during the warm-up and then falls with the square root of the step number.
Steps count from 1.

Hint: both terms of the minimum are equal at step = warmup_steps.
"""


def learning_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """Return the learning rate of a step, equation (3)."""
    raise NotImplementedError
