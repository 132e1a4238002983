"""Model directories: atomic writing and verification."""

import json
import logging
import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from transept.checkpoint import (
    Bundle,
    Checkpoints,
    average,
    load_weights,
    weights_of,
    write_directory,
)
from transept.errors import CheckpointError


def write(directory: Path, fill: float = 1.0, step: int = 7, **state: object) -> Path:
    weights = {"a": torch.full((3, 4), fill), "b": torch.arange(5.0)}
    write_directory(
        directory,
        tensors={"weights.safetensors": weights, "training.safetensors": {"m": torch.ones(2)}},
        texts={"config.toml": "x = 1\n", "state.json": json.dumps({"step": step, **state})},
        about={"step": step},
    )
    return directory


def test_bundle_is_read_back_as_written(tmp_path: Path) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words/list").write_text("a b c")
    write_directory(
        tmp_path / "deep/model",
        tensors={"weights.safetensors": {"w": torch.randn(2, 3).T}},
        texts={"config.toml": "x = 1\n"},
        folders={"tokenizer": tmp_path / "words"},
        about={"maker": "test"},
    )
    bundle = Bundle.open(tmp_path / "deep/model")
    assert bundle.weights()["w"].shape == (3, 2)
    assert bundle.about == {"maker": "test"}
    assert (bundle.directory / "tokenizer/list").read_text() == "a b c"
    assert not bundle.resumable
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["model"]


def test_open_names_file_that_is_truncated_altered_or_missing(tmp_path: Path) -> None:
    names = ["weights.safetensors", "training.safetensors", "config.toml", "state.json"]
    for name in names:
        for harm, complaint in [("cut", "is damaged"), ("flip", "is damaged"), ("lose", "cannot")]:
            directory = write(tmp_path / f"{name}-{harm}")
            path = directory / name
            contents = bytearray(path.read_bytes())
            if harm == "cut":
                path.write_bytes(contents[:-1])
            elif harm == "flip":
                contents[len(contents) // 2] ^= 4
                path.write_bytes(contents)
            else:
                path.unlink()
            with pytest.raises(CheckpointError, match=complaint) as error:
                Bundle.open(directory)
            assert str(path) in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99, "files": {}, "about": {}}'])
def test_open_rejects_invalid_manifest(tmp_path: Path, text: str) -> None:
    directory = write(tmp_path / "model")
    (directory / "manifest.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"manifest\.json"):
        Bundle.open(directory)


def test_open_rejects_directory_that_is_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a model directory"):
        Bundle.open(tmp_path)


def test_open_detects_any_flipped_bit(tmp_path: Path) -> None:
    chance = random.Random(0)
    directory = write(tmp_path / "model")
    files = list(directory.iterdir())
    for _ in range(200):
        path = chance.choice(files)
        good = path.read_bytes()
        bad = bytearray(good)
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(CheckpointError):
            Bundle.open(directory)
        path.write_bytes(good)
    Bundle.open(directory)


def test_newest_skips_damaged_checkpoints_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.newest() is None
    for step in (10, 20, 30):
        write(checkpoints.path(step), step=step)
    (checkpoints.path(30) / "weights.safetensors").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        newest = checkpoints.newest()
    assert newest is not None
    assert newest.state() == {"step": 20}
    assert "step-00000030" in caplog.text
    assert [bundle.about["step"] for bundle in checkpoints.last(5)] == [10, 20]
    checkpoints.discard_after(20)
    assert checkpoints.steps() == [10, 20]


def test_prune_keeps_last_and_best_checkpoints(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    for step in range(1, 6):
        write(checkpoints.path(step))
    checkpoints.prune(best=2)
    assert checkpoints.steps() == [2, 4, 5]


def test_prune_keeps_regular_checkpoints_despite_others(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    write(checkpoints.path(1), step=1, regular=False)
    assert checkpoints.regular_steps() == [1]
    for step in range(2, 8):
        write(checkpoints.path(step), step=step, regular=step % 3 == 0)
    assert checkpoints.regular_steps() == [3, 6]
    assert [bundle.about["step"] for bundle in checkpoints.last(1)] == [6]
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.about["step"] == 7
    checkpoints.prune(best=4)
    assert checkpoints.steps() == [3, 4, 6, 7]
    checkpoints.prune(best=3)
    assert checkpoints.steps() == [3, 6, 7]


def test_newest_skips_checkpoint_with_wrong_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (10, 20):
        write(checkpoints.path(step), step=step)
    checkpoints.path(20).rename(checkpoints.path(30))
    (tmp_path / "step-00000040 (copy)").mkdir()
    newest = checkpoints.newest()
    assert newest is not None
    assert newest.directory == checkpoints.path(10)
    assert "step-00000030: holds step 20" in caplog.text


def test_prune_removes_temporary_directories(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, keep=2)
    write(checkpoints.path(1))
    for clean in (partial(checkpoints.prune, best=None), partial(checkpoints.discard_after, 1)):
        (tmp_path / ".step-00000007.part/tokenizer").mkdir(parents=True)
        clean()
        assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_all_files_have_the_same_permissions(tmp_path: Path) -> None:
    modes = {path.stat().st_mode for path in write(tmp_path / "model").iterdir() if path.is_file()}
    assert len(modes) == 1


def test_average_is_the_mean_of_weights(tmp_path: Path) -> None:
    bundles = [Bundle.open(write(tmp_path / str(i), fill=float(i))) for i in (1, 2, 6)]
    mean = average(bundles)
    assert mean["a"].unique().tolist() == [3.0]
    assert mean["b"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_load_weights_rejects_mismatch_without_changes() -> None:
    model = nn.Linear(3, 2)
    before = {name: weight.clone() for name, weight in weights_of(model).items()}
    good = weights_of(nn.Linear(3, 2))
    for bad, complaint in [
        ({"weight": good["weight"]}, "lacks bias"),
        (good | {"extra": torch.ones(1)}, "has unexpected weights extra"),
        (good | {"weight": torch.ones(5, 3)}, r"weight is \[5, 3\], and the model's is \[2, 3\]"),
    ]:
        with pytest.raises(CheckpointError, match=complaint):
            load_weights(model, bad, Path("there"))
        assert all(torch.equal(before[name], weight) for name, weight in weights_of(model).items())
    load_weights(model, good, Path("there"))
    assert torch.equal(model.weight, good["weight"])


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit the size of files, which acts like a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, former)


def test_full_disk_leaves_existing_checkpoints_unchanged(tmp_path: Path) -> None:
    write(tmp_path / "step-00000001")
    tensors = {"weights.safetensors": {"w": torch.ones(5000)}}
    with pytest.raises(CheckpointError, match="cannot be written") as caught, full_disk():
        write_directory(tmp_path / "step-00000002", tensors=tensors, texts={}, about={})
    assert "Existing files are unchanged" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    Bundle.open(tmp_path / "step-00000001")


def test_unwritable_directory_raises_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(CheckpointError, match="cannot be written"):
        write(tmp_path / "file/model")
