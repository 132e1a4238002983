"""The energy of a GPU, as a program by the name of nvidia-smi tells it."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from transept.runtime.power import PowerMeter

UUID = "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it writes down what it was asked."""
    program, asked = tmp_path / "nvidia-smi", tmp_path / "asked"
    program.write_text(f'#!/bin/sh\necho "$@" >{asked}\necho 250.00\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return asked


def test_the_gpu_that_computes_is_asked_for_by_its_own_name(
    asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = {torch.device("cuda:1"): SimpleNamespace(uuid=UUID)}
    monkeypatch.setattr(torch.cuda, "get_device_properties", devices.__getitem__)
    with PowerMeter(torch.device("cuda:1")) as power:
        end = time.monotonic() + 120
        while power.watts is None and time.monotonic() < end:
            time.sleep(0.01)
    assert f"--id=GPU-{UUID} " in asked.read_text()
    assert power.watts == 250.0
    assert power.joules is not None
    assert power.joules > 0


def test_a_gpu_is_not_asked_for_what_a_cpu_computes(asked: Path) -> None:
    with PowerMeter(torch.device("cpu")) as power:
        time.sleep(0.1)
    assert not asked.exists()
    assert power.joules is None
