"""torch.compile changes the speed of a step, but not its result."""

import json
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("device", "precision", "near"),
    [
        pytest.param("cpu", "fp32", 1e-5, marks=pytest.mark.slow),
        pytest.param("cuda", "fp32", 1e-4, marks=pytest.mark.gpu),
        pytest.param("cuda", "bf16", 0.15, marks=pytest.mark.gpu),
    ],
)
def test_compiled_step_matches_plain_step(device: str, precision: str, near: float) -> None:
    words = [sys.executable, "-m", "tests.parity.compiled", device, precision]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["graphs_before"] == 0 < found["graphs"], "nothing was compiled, or all of it"
    assert found["graphs"] <= 2, "a graph for the first length, and one for all others"
    assert found["loss"] < near / 10
    assert found["gradients"] < near
