"""A model's directory, turned into another: for another engine, or smaller."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from transept.api.models import load
from transept.api.transducer import Transducer
from transept.checkpoint import (
    CONFIG,
    WEIGHTS,
    Bundle,
    at_once,
    tokenizers_in,
    write_directory,
)
from transept.errors import CheckpointError, ConfigError
from transept.export import ctranslate2
from transept.export.ctranslate2 import Names, Quantization
from transept.quantization import Precision, Rounding, pack, unpack
from transept.shelf import find_model


def export_ctranslate2(name: Path | str | None, output: Path, quantization: Quantization) -> None:
    """Write a model as CTranslate2 reads it, with its vocabularies beside it.

    Args:
        name: A model, as `load` takes it.
        output: The new directory.
        quantization: How the weights are stored.
    """
    ctranslate2.require()
    directory = find_model(name)
    model = load(directory, device="cpu", engine="native")
    if not isinstance(model, Transducer):
        raise ConfigError(
            f"{directory} is a parsing model: CTranslate2 could not hold it to well-formed trees"
        )
    names = Names.of(model.source_tokenizer, model.target_tokenizer)
    _refuse_to_replace(output)
    with at_once(output) as part:
        ctranslate2.save(model.model, names, part, quantization=quantization)
        for folder, path in tokenizers_in(directory).items():
            shutil.copytree(path, part / folder)


@dataclass(frozen=True, slots=True)
class Quantized:
    """What became of a model that was stored in less room."""

    before: Path
    after: Path
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
    _refuse_to_replace(output)
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
    return Quantized(bundle.directory, output, before, after, rounding)


def _refuse_to_replace(output: Path) -> None:
    if output.exists():
        raise CheckpointError(f"{output}: is there already; choose another --output")
