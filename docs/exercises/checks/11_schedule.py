"""Check of exercise 11."""

import math

from comparing import must

from transept.training.update import Schedule


def check(student):
    """The form of the curve first, then its values."""
    rate = student.learning_rate
    must(isinstance(rate(1, 512, 4000), float), f"the rate is {rate(1, 512, 4000)!r}, not a float")
    growth = rate(200, 512, 4000) / rate(100, 512, 4000)
    must(
        math.isclose(growth, 2, rel_tol=1e-6),
        f"from step 100 to step 200 of a warm-up of 4000 the rate becomes {growth:.2f} times as "
        "large, not 2 times: it rises linearly",
    )
    decay = rate(32_000, 512, 4000) / rate(8_000, 512, 4000)
    must(
        math.isclose(decay, 0.5, rel_tol=1e-6),
        f"from step 8,000 to step 32,000 the rate becomes {decay:.2f} times as large, not 0.5 "
        "times: after the warm-up it falls as step^−0.5",
    )
    for step, d_model, warmup_steps in ((1, 512, 4000), (4000, 512, 4000), (50, 64, 100)):
        found, expected = rate(step, d_model, warmup_steps), Schedule(d_model, warmup_steps)(step)
        must(
            math.isclose(found, expected, rel_tol=1e-6),
            f"step {step} with d_model = {d_model} and {warmup_steps} steps of warm-up has the "
            f"rate {found:.3g}, not {expected:.3g}: {found / expected:.3g} times as large",
        )
