"""A small prepared corpus, shared by all tests that train on it, and a model."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.kitchen import Kitchen, open_kitchen
from tests.integration.workshop import Workshop, open_workshop, run

Shared = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """A function that makes a directory once for all processes of a test run. Do not change it."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        directory, complete = base / f"shared-{name}", base / f"shared-{name}.complete"
        with (base / f"shared-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                directory.mkdir(exist_ok=True)  # one that another process did not complete
                make(directory)
                complete.touch()
        return directory

    return made


@pytest.fixture(scope="session")
def workshop(shared: Shared) -> Workshop:
    directory = shared("workshop", open_workshop)
    return Workshop(directory, directory / "small.toml")


@pytest.fixture(scope="session")
def straight(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the workshop's config without interruption. Copy it before changing it."""
    output = tmp_path_factory.mktemp("straight") / "run"
    assert run("train", workshop.config, "--output", output) == 0
    return output


@pytest.fixture(scope="session")
def trained(workshop: Workshop, shared: Shared) -> Path:
    """A short training run, with its average. It is long enough that rounding changes no output."""
    settings = ["training.max_steps=400", "model.d_model=32", "model.d_ff=64", "model.dropout=0.0",
                "training.log_every=20", "validation.every_steps=40",
                "schedule.warmup_steps=40"]  # fmt: skip

    def train(directory: Path) -> None:
        assert run("train", workshop.config, *settings, "--output", directory / "run") == 0
        assert run("average", directory / "run", "--last", "3") == 0

    return shared("trained", train) / "run"


@pytest.fixture(scope="session")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Kitchen:
    return open_kitchen(tmp_path_factory.mktemp("kitchen"))


@pytest.fixture(scope="session")
def cooked(kitchen: Kitchen, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a recipe that ran without interruption. Copy it before changing it."""
    work = tmp_path_factory.mktemp("cooked") / "numbers"
    assert kitchen.cook(work, "--data", kitchen.data) == 0
    return work
