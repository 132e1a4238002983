"""Quantized weights: size and accuracy."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from transept.checkpoint import Bundle, write_directory
from transept.errors import CheckpointError
from transept.quantization import Precision, Rounding, pack, unpack
from transept.runtime.storage import sealed, unsealed

HERE = Path("here")


def weights(seed: int = 0) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(40, 30, generator=draw) * torch.logspace(-6, 4, 40)[:, None]
    matrix[3] = 0
    return {"matrix": matrix, "vector": torch.randn(7, generator=draw)}


def write(directory: Path, precision: Precision) -> Path:
    tensors = {"weights.safetensors": pack(weights(), precision)}
    write_directory(directory, tensors=tensors, texts={}, about={}, precision=precision)
    return directory


@given(st.integers(0, 10_000))
def test_int8_error_is_at_most_half_a_step(seed: int) -> None:
    before = weights(seed)
    after = unpack(pack(before, "int8"), "int8", HERE)
    step = before["matrix"].abs().amax(dim=1, keepdim=True) / 127
    assert ((after["matrix"] - before["matrix"]).abs() <= step * 0.5001).all()
    assert torch.equal(after["vector"], before["vector"])
    assert not after["matrix"][3].any()


def test_quantizing_twice_changes_nothing() -> None:
    once = unpack(pack(weights(), "int8"), "int8", HERE)
    twice = unpack(pack(once, "int8"), "int8", HERE)
    assert torch.allclose(once["matrix"], twice["matrix"], rtol=1e-6, atol=0)


def test_rounding_reports_largest_errors() -> None:
    before = {"even": torch.full((2, 2), 1.0), "odd": torch.tensor([[1.0, 0.5], [2.0, 2.0]])}
    after = {"even": torch.full((2, 2), 1.0), "odd": torch.tensor([[1.0, 0.4], [2.0, 2.0]])}
    rounding = Rounding.between(before, after)
    assert rounding.name == "odd"
    assert rounding.weight == pytest.approx(0.1)
    assert rounding.matrix == pytest.approx(0.1 / (1 + 0.25 + 8) ** 0.5)
    int8 = Rounding.between(weights(), unpack(pack(weights(), "int8"), "int8", HERE))
    assert 0.003 < int8.weight <= 0.5 / 127 * 1.001


@pytest.mark.parametrize(("precision", "share"), [("int8", 0.35), ("bf16", 0.6)])
def test_quantized_bundle_is_smaller_and_loads_as_float32(
    tmp_path: Path, precision: Precision, share: float
) -> None:
    whole, small = write(tmp_path / "whole", "fp32"), write(tmp_path / "small", precision)
    sizes = [(path / "weights.safetensors").stat().st_size for path in (small, whole)]
    assert sizes[0] < share * sizes[1]
    bundle = Bundle.open(small)
    assert (bundle.precision, Bundle.open(whole).precision) == (precision, "fp32")
    read = bundle.weights()
    assert read.keys() == weights().keys()
    assert all(tensor.dtype == torch.float32 for tensor in read.values())
    assert torch.allclose(read["matrix"], weights()["matrix"], rtol=0.01, atol=100)


def test_only_quantized_bundles_have_format_2(tmp_path: Path) -> None:
    manifests = [
        json.loads((write(tmp_path / name, name) / "manifest.json").read_text())
        for name in ("fp32", "int8")
    ]
    assert [manifest["format"] for manifest in manifests] == [1, 2]
    assert [manifest.get("precision") for manifest in manifests] == [None, "int8"]


@pytest.mark.parametrize("change", [{"precision": "int3"}, {"precision": None}, {"format": 3}])
def test_open_rejects_unknown_precision(tmp_path: Path, change: dict[str, object]) -> None:
    path = write(tmp_path / "model", "int8") / "manifest.json"
    path.write_bytes(sealed(unsealed(path.read_bytes()) | change))
    with pytest.raises(CheckpointError, match=r"manifest\.json: has format"):
        Bundle.open(tmp_path / "model")


def test_weights_reject_scale_without_its_matrix(tmp_path: Path) -> None:
    path = write(tmp_path / "model", "int8") / "weights.safetensors"
    bundle = Bundle.open(tmp_path / "model")
    good = load_file(path)
    for bad in (
        {name: tensor for name, tensor in good.items() if name != "matrix"},
        good | {"matrix.scale": torch.ones(39)},
    ):
        save_file(bad, path)
        with pytest.raises(CheckpointError, match=r"weights\.safetensors: matrix\.scale"):
            bundle.weights()
