import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from transept.checkpoint import CHECKPOINTS, STATE, WEIGHTS, write_directory
from transept.shelf import SHELVES, find_model, find_tokenizer


def write_model(directory: Path, step: int = 0, state: Mapping[str, object] | None = None) -> None:
    tensors = {WEIGHTS: {"w": torch.ones(1)}}
    texts = {} if state is None else {STATE: json.dumps(state)}
    write_directory(directory, tensors=tensors, texts=texts, about={"step": step})


def test_find_model_of_demo_or_recipe_is_its_run(tmp_path: Path) -> None:
    training = tmp_path / "demo" / "run"
    (training / CHECKPOINTS).mkdir(parents=True)
    write_model(training / "average-20")
    assert find_model(training.parent) == find_model(training) == training / "average-20"


def test_find_model_of_a_model_ignores_runs_inside_it(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    (tmp_path / "model/run" / CHECKPOINTS).mkdir(parents=True)
    assert find_model(tmp_path / "model") == tmp_path / "model"


def test_find_tokenizer_of_a_model_is_the_models_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHELVES, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "xx-yy")
    (tmp_path / "xx-yy/config.toml").touch()
    for part in ("tokenizer", "target_tokenizer"):
        (tmp_path / "xx-yy" / part).mkdir()
    for name in ("xx-yy", tmp_path / "xx-yy"):
        assert find_tokenizer(name).resolve() == tmp_path / "xx-yy/tokenizer"
        target = find_tokenizer(name, "target_tokenizer").resolve()
        assert target == tmp_path / "xx-yy/target_tokenizer"
    assert find_tokenizer(tmp_path / "other") == tmp_path / "other"


def test_find_model_prefers_average_of_last_step_over_newest_file(
    tmp_path: Path,
) -> None:
    (tmp_path / CHECKPOINTS).mkdir()
    for name, step, moment in (("average-5", 300, 1e9), ("average-3", 200, 2e9)):
        write_model(tmp_path / name, step)
        os.utime(tmp_path / name, (moment, moment))
    assert find_model(tmp_path) == tmp_path / "average-5"
    (tmp_path / "average-5/manifest.json").write_text("damaged")
    assert find_model(tmp_path) == tmp_path / "average-3"


def test_find_model_warns_once_of_outdated_average(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_model(tmp_path / CHECKPOINTS / "step-00000300", 300)
    write_model(tmp_path / "average-5", 300)
    with caplog.at_level(logging.WARNING):
        assert find_model(tmp_path) == tmp_path / "average-5"
        assert not caplog.messages
        write_model(tmp_path / CHECKPOINTS / "step-00001400", 1400)
        assert {find_model(tmp_path) for _ in range(2)} == {tmp_path / "average-5"}
        assert find_model(tmp_path / "average-5") == tmp_path / "average-5"
    assert caplog.messages == [
        f"using {tmp_path}/average-5, an average up to step 300, but the run has reached step "
        f"1,400. Average it again, or use {tmp_path}/checkpoints/step-00001400"
    ]


def test_find_model_gives_no_advice_when_the_later_checkpoint_is_never_averaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step, regular in ((300, True), (312, False)):
        state = {"step": step, "regular": regular}
        write_model(tmp_path / CHECKPOINTS / f"step-{step:08d}", step, state)
    write_model(tmp_path / "average-5", 300)
    with caplog.at_level(logging.WARNING):
        assert find_model(tmp_path) == tmp_path / "average-5"
    assert not caplog.messages
