import os
from pathlib import Path

import torch

from transept.api.models import find_model
from transept.checkpoint import CHECKPOINTS, WEIGHTS, write_directory


def test_the_newest_average_is_that_of_the_last_step_whatever_the_clock_said(
    tmp_path: Path,
) -> None:
    (tmp_path / CHECKPOINTS).mkdir()
    for name, step, moment in (("average-5", 300, 1e9), ("average-3", 200, 2e9)):
        tensors = {WEIGHTS: {"w": torch.ones(1)}}
        write_directory(tmp_path / name, tensors=tensors, texts={}, about={"step": step})
        os.utime(tmp_path / name, (moment, moment))
    assert find_model(tmp_path) == tmp_path / "average-5"
    (tmp_path / "average-5/manifest.json").write_text("damaged")
    assert find_model(tmp_path) == tmp_path / "average-3"
