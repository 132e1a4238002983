"""Commands whose standard output or standard error is no longer read: `transept … | head`."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.integration.kitchen import Kitchen
from tests.integration.workshop import Workshop, run

from transept.apps.recipes import recipe
from transept.checkpoint import Checkpoints


@contextmanager
def unread(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[None]:
    """Standard streams that lead to a pipe without a reader."""
    with monkeypatch.context() as patch, ExitStack() as open_streams:
        for name in names:
            reader, writer = os.pipe()
            os.close(reader)
            stream = os.fdopen(writer, "w", buffering=1, encoding="utf-8")
            patch.setattr(sys, name, open_streams.enter_context(stream))
        yield


def test_train_continues_to_its_last_step_when_stderr_is_closed(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["train", workshop.config, "training.max_steps=6", "checkpoint.every_steps=none"]
    with unread(monkeypatch, "stdout", "stderr"):
        assert run(*words, "--output", tmp_path / "run") == 0
    assert Checkpoints(tmp_path / "run/checkpoints").steps()[-1] == 6


def test_train_out_of_time_exits_75_when_stderr_is_closed(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with unread(monkeypatch, "stdout", "stderr"):
        words = ["train", workshop.config, "--minutes", "1e-9"]
        assert run(*words, "--output", tmp_path / "run") == 75


def test_recipe_run_continues_when_stdout_is_closed(
    kitchen: Kitchen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ["experiment.training.max_steps=3", "--until", "average"]
    with unread(monkeypatch, "stdout", "stderr"):
        assert kitchen.cook(tmp_path / "work", *few, "--data", kitchen.data) == 0
    assert (tmp_path / "work/records/average.json").exists()


def test_translate_stops_quietly_when_stdout_is_closed(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("one two\n" * 3)
    with unread(monkeypatch, "stdout"):
        assert run("translate", "--model", trained, "--input", tmp_path / "text") == 0


def test_broken_pipe_that_is_not_standard_output_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def names() -> list[str]:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(recipe, "names", names)
    assert run("recipe", "show") == 1
    assert "Broken pipe" in capsys.readouterr().err
