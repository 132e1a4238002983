"""Check of exercise 7."""

import math

import torch
from comparing import close, must, shaped

from transept.model.positions import sinusoids


def check(student):
    """Position 0 shows the order of sines and cosines, position 1 the wavelengths."""
    n, d_model = 50, 16
    found = student.positional_encoding(n, d_model)
    shaped(found, (n, d_model), f"the encoding of {n} positions with d_model = {d_model}")
    for dimension, number in enumerate(found[0].tolist()):
        name, expected = ("cos", 1) if dimension % 2 else ("sin", 0)
        must(
            abs(number - expected) < 1e-6,
            f"dimension {dimension} of position 0 is {number:.3f}, not {name} 0 = {expected}: "
            "sines and cosines alternate, and positions count from 0",
        )
    for two_i in range(0, d_model, 2):
        angle = math.atan2(*found[1, two_i : two_i + 2].tolist())
        power = math.inf if angle <= 0 else -math.log(angle) / math.log(10_000)
        must(
            abs(power - two_i / d_model) < 1e-3,
            f"at position 1, the angle of the dimensions {two_i} and {two_i + 1} is {angle:.5f} "
            f"= 10000^−{power:.4f}, but the exponent must be {two_i}/{d_model} = "
            f"{two_i / d_model:.4f}",
        )
    close(found.double(), sinusoids(torch.arange(n), d_model), "the encoding")
