"""Smaller weights for storage: 8-bit integers with a scale a row, or bfloat16.

In int8 a row w of a matrix is stored as round(w / s) with s = max|w| / 127: no weight is off by
more than s / 2. Vectors (norms, biases) stay in single precision: they are few, and scale whole
channels. Computing is done in single precision again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch

from transept.errors import CheckpointError
from transept.shapes import Float, Tensor

Precision = Literal["fp32", "bf16", "int8"]
"""The precision in which weights are stored."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

LARGEST = 127
SCALE = ".scale"
"""A matrix's name with this behind it is the name of its rows' scales."""

Tensors = Mapping[str, Tensor]


def pack(weights: Tensors, precision: Precision) -> dict[str, Tensor]:
    """Weights as they are stored."""
    if precision == "bf16":
        return {name: weight.bfloat16() for name, weight in weights.items()}
    if precision == "fp32":
        return dict(weights)
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        packed[name] = weight
        if weight.dim() == 2:
            packed[name], packed[name + SCALE] = _to_int8(weight)
    return packed


def unpack(packed: Tensors, precision: Precision, origin: Path) -> dict[str, Tensor]:
    """What is stored in a file, in single precision again."""
    if precision == "fp32":
        return dict(packed)
    scales = {name for name in packed if name.endswith(SCALE)}
    weights = {name: tensor.float() for name, tensor in packed.items() if name not in scales}
    for name in scales:
        matrix = name.removesuffix(SCALE)
        if matrix not in weights or len(packed[name]) != len(weights[matrix]):
            raise CheckpointError(f"{origin}: {name} fits no matrix in this file")
        weights[matrix].mul_(packed[name][:, None])
    return weights


def _to_int8(weight: Float[Tensor, "O I"]) -> tuple[Tensor, Tensor]:
    scale = weight.abs().amax(dim=1) / LARGEST
    # A row of zeros has no scale of its own; any will do.
    scale = torch.where(scale > 0, scale, 1.0)
    return (weight / scale[:, None]).round().to(torch.int8), scale


@dataclass(frozen=True, slots=True)
class Rounding:
    """How far rounding has moved the weights."""

    weight: float
    """The largest |w − ŵ|, in terms of the largest |w| of its row."""
    matrix: float
    """The largest ‖W − Ŵ‖ / ‖W‖ of a matrix …"""
    name: str
    """… and whose it is."""

    @classmethod
    def between(cls, before: Tensors, after: Tensors) -> "Rounding":
        """Compare weights with what is left of them after rounding."""
        worst, weight = (0.0, ""), 0.0
        for name, original in before.items():
            rows = original.view(len(original), -1).double()
            error = after[name].view_as(rows).double() - rows
            largest = rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)
            weight = max(weight, float((error.abs() / largest).max()))
            worst = max(worst, (float(error.norm() / rows.norm().clamp_min(1e-30)), name))
        return cls(weight, *worst)
