"""How the checks compare an answer with the right one, and how they say what is wrong."""

from typing import Any

import torch
from torch import Tensor


class WrongAnswerError(Exception):
    """An answer is not right. The text is for the student."""


def must(condition: object, message: str) -> None:
    """Raise WrongAnswerError with this message unless the condition holds."""
    if not condition:
        raise WrongAnswerError(message)


def shaped(found: Any, shape: tuple[int, ...], what: str) -> None:
    """Check that a result is a tensor of this shape."""
    must(found is not None, f"{what} is None: does the function return its result?")
    must(isinstance(found, Tensor), f"{what} is of type {type(found).__name__}, not a tensor")
    there = tuple(found.shape)
    must(there == shape, f"{what} has the shape {there}, not {shape}")


def close(found: Any, expected: Tensor, what: str, hint: str = "") -> None:
    """Check that a result is the expected tensor, up to rounding."""
    shaped(found, tuple(expected.shape), what)
    must(not found.isnan().any(), f"{what} contains NaN")
    difference = (found - expected).abs().max().item()
    right = torch.allclose(found, expected.to(found.dtype), rtol=1e-4, atol=1e-5)
    must(right, f"{what} differs from the right value by up to {difference:.3g}{hint}")
