"""A model directory, written again with smaller weights."""

from dataclasses import dataclass
from pathlib import Path

from transept.checkpoint import (
    CONFIG,
    WEIGHTS,
    Bundle,
    tokenizers_in,
    write_directory,
)
from transept.errors import CheckpointError
from transept.quantization import Precision, Rounding, pack, unpack
from transept.shelf import find_model


@dataclass(frozen=True, slots=True)
class Quantized:
    """What became of a model that was stored in less room."""

    bytes_before: int
    """Of the file of weights."""
    bytes_after: int
    rounding: Rounding


def quantize(name: Path | str | None, precision: Precision, output: Path) -> Quantized:
    """Write a model anew, its weights in less than single precision.

    Args:
        name: A model, as `load` takes it.
        precision: In what to store them.
        output: The new directory.
    """
    bundle = Bundle.open(find_model(name))
    if bundle.precision != "fp32":
        raise CheckpointError(
            f"{bundle.directory}: is of {bundle.precision} already; quantize the model that it was "
            "made from"
        )
    if output.exists():
        raise CheckpointError(f"{output}: already exists; choose another directory")
    weights = bundle.weights()
    packed = pack(weights, precision)
    write_directory(
        output,
        tensors={WEIGHTS: packed},
        texts={CONFIG: (bundle.directory / CONFIG).read_text(encoding="utf-8")},
        folders=tokenizers_in(bundle.directory),
        about=bundle.about,
        precision=precision,
    )
    before, after = ((path / WEIGHTS).stat().st_size for path in (bundle.directory, output))
    rounding = Rounding.between(weights, unpack(packed, precision, output))
    return Quantized(before, after, rounding)
