"""Shape annotations become assertions in the tests: see `transept.shapes`."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.shape_checks import check_signatures

CHECKED = [
    "transept.model",
    "transept.training",
    "transept.decoding",
    "transept.tasks.parsing.constraint",
]
check_signatures(CHECKED)
# The same examples on every run, and no time limits: a test fails because of a change, not because
# of chance or a busy machine. `--hypothesis-profile=explore` tries new examples.
explore = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", explore)
settings.register_profile("same", explore, derandomize=True)
settings.load_profile("same")
# Matrices here are tiny: a second thread costs more than it brings, also in the commands that tests
# start. `make test-portable` uses two.
os.environ["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS") or "1"
# nohup ignores SIGHUP, and so would every command that a test starts.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("numprocesses", None):
        return  # This process only starts those that run the tests: it does not need torch.
    import torch

    # Without a GPU, kernels run in Triton's interpreter. That must be said before any of them is
    # imported, as a test that resolves names of the package may do.
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def pytest_collection_finish() -> None:
    # Modules and collected tests stay until the end. A full collection visited them all: 0.3 s.
    gc.freeze()
    gc.set_threshold(10_000)  # by default it took 4 % of the time


def pytest_unconfigure() -> None:
    gc.unfreeze()  # Libraries report objects that are left at exit.
