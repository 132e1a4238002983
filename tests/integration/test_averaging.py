"""`transept average`: the mean of a run's last checkpoints, and its errors."""

import resource
import shutil
from pathlib import Path

import pytest
import torch
from tests.integration.workshop import Workshop, run

from transept.checkpoint import Bundle, Checkpoints


def test_average_is_a_bundle_of_the_last_checkpoints(
    straight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(straight, tmp_path / "run")
    assert run("average", tmp_path / "run", "--last", "2", "--output", tmp_path / "mean") == 0
    bundle = Bundle.open(tmp_path / "mean")
    assert bundle.about["averaged_steps"] == [25, 30]
    parts = [Bundle.open(tmp_path / f"run/checkpoints/step-000000{n}").weights() for n in (25, 30)]
    for name, weight in bundle.weights().items():
        torch.testing.assert_close(weight, (parts[0][name] + parts[1][name]) / 2)
    assert run("average", tmp_path / "run", "--last", "2", "--output", tmp_path / "mean") == 4
    assert run("average", tmp_path / "run", "--last", "99") == 4
    errors = capsys.readouterr().err
    assert "use --force to replace it" in errors
    assert "has only 5 complete regular checkpoints, not 99" in errors


@pytest.mark.slow
def test_average_is_the_same_for_an_interrupted_run(workshop: Workshop, tmp_path: Path) -> None:
    words = ["train", workshop.config, "training.max_steps=8", "checkpoint.every_steps=3",
             "checkpoint.keep=2", "validation.every_steps=4", "--output"]  # fmt: skip
    assert run(*words, tmp_path / "straight") == 0
    while run(*words, tmp_path / "stopped", "--minutes", "1e-9") == 75:
        pass
    assert max(Checkpoints(tmp_path / "stopped/checkpoints").steps()) == 8
    for name in ("straight", "stopped"):
        assert run("average", tmp_path / name, "--last", "2") == 0
    straight, stopped = (Bundle.open(tmp_path / n / "average-2") for n in ("straight", "stopped"))
    assert straight.about["averaged_steps"] == stopped.about["averaged_steps"] == [6, 8]
    assert straight.sha256["weights.safetensors"] == stopped.sha256["weights.safetensors"]


def test_average_reports_the_checkpoint_of_minutes_that_it_leaves_out(
    workshop: Workshop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", workshop.config, "training.max_steps=9", "checkpoint.every_steps=3"]
    for _ in range(4):
        assert run(*words, "--output", tmp_path / "run", "--minutes", "1e-9") == 75
    capsys.readouterr()
    assert run("average", tmp_path / "run", "--last", "1") == 0
    shown = capsys.readouterr()
    assert shown.out == f"averaged steps 3 into {tmp_path}/run/average-1\n"
    assert "step 4 is not included: it was not saved at a regular interval" in shown.err


@pytest.mark.parametrize("last", ["0", "-2"])
def test_average_requires_at_least_one_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], last: str
) -> None:
    (tmp_path / "checkpoints").mkdir()
    assert run("average", tmp_path, "--last", last) == 2
    assert f"last: {last} must be at least 1" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoints"]


def test_average_requires_an_existing_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("average", tmp_path / "typo") == 4
    assert "typo: there is no such directory" in capsys.readouterr().err
    assert run("average", tmp_path) == 4
    assert "is not a run directory (no checkpoints/)" in capsys.readouterr().err
    (tmp_path / "checkpoints").mkdir()
    assert run("average", tmp_path) == 4
    assert "has no complete checkpoint yet; train it first" in capsys.readouterr().err


def test_average_replaces_only_a_model(
    straight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "run"
    shutil.copytree(straight, work)
    words = ["average", work, "--force", "--last"]
    assert run(*words, "2") == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    checkpoint = work / "checkpoints/step-00000030"
    for place in (work, tmp_path, work / "../run", checkpoint, checkpoint / "tokenizer"):
        capsys.readouterr()
        assert run(*words, "2", "--output", place) == 4, place
        assert "--force replaces only models" in capsys.readouterr().err
    shutil.copy(work / "average-2/manifest.json", work)
    assert run(*words, "2", "--output", work) == 4
    (work / "manifest.json").unlink()
    unchanged = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert unchanged | {work: 0} == before | {work: 0}
    assert run(*words, "1", "--output", work / "average-2") == 0
    assert Bundle.open(work / "average-2").about["averaged_steps"] == [30]
    assert not list(work.glob(".average*"))


def test_failed_average_keeps_the_old_model(
    straight: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "run"
    shutil.copytree(straight, work)
    words = ["average", work, "--last", "2"]
    assert run(*words) == 0
    before = (work / "average-2/manifest.json").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        assert run(*words, "--force") == 4
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "Existing files are unchanged" in capsys.readouterr().err
    assert (work / "average-2/manifest.json").read_bytes() == before
    assert Bundle.open(work / "average-2").about["averaged_steps"] == [25, 30]
