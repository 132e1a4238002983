"""Quantized weights for storage: 8-bit integers with one scale per row, or bfloat16.

In int8, a row w of a matrix is stored as round(w / s) with s = max|w| / 127, so the error of a
weight is at most s / 2. Vectors (layer normalization, biases) stay in single precision: they are
small, and each of their values scales a whole channel. Computation is in single precision.
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
"""The suffix for the name of a matrix's row scales."""

Tensors = Mapping[str, Tensor]


def pack(weights: Tensors, precision: Precision) -> dict[str, Tensor]:
    """Convert weights to the stored precision."""
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
    """Convert stored weights to single precision."""
    if precision == "fp32":
        return dict(packed)
    scales = {name for name in packed if name.endswith(SCALE)}
    weights = {name: tensor.float() for name, tensor in packed.items() if name not in scales}
    for name in scales:
        matrix = name.removesuffix(SCALE)
        if matrix not in weights or len(packed[name]) != len(weights[matrix]):
            raise CheckpointError(f"{origin}: {name} does not match any matrix in this file")
        weights[matrix].mul_(packed[name][:, None])
    return weights


def _to_int8(weight: Float[Tensor, "O I"]) -> tuple[Tensor, Tensor]:
    scale = weight.abs().amax(dim=1) / LARGEST
    # For a row of zeros, any scale will do.
    scale = torch.where(scale > 0, scale, 1.0)
    return (weight / scale[:, None]).round().to(torch.int8), scale


@dataclass(frozen=True, slots=True)
class Rounding:
    """The error of quantized weights."""

    weight: float
    """The largest |w − ŵ|, divided by the largest |w| in the same row."""
    matrix: float
    """The largest ‖W − Ŵ‖ / ‖W‖ over all matrices."""
    name: str
    """The name of that matrix."""

    @classmethod
    def between(cls, before: Tensors, after: Tensors) -> "Rounding":
        """Compare weights before and after quantization."""
        worst, weight = (0.0, ""), 0.0
        for name, original in before.items():
            rows = original.view(len(original), -1).double()
            error = after[name].view_as(rows).double() - rows
            largest = rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)
            weight = max(weight, float((error.abs() / largest).max()))
            worst = max(worst, (float(error.norm() / rows.norm().clamp_min(1e-30)), name))
        return cls(weight, *worst)
