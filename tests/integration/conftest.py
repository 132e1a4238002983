"""A small prepared corpus, shared by all tests that train on it, and a model."""

from pathlib import Path

import pytest
from tests.integration.kitchen import Kitchen, open_kitchen
from tests.integration.workshop import Workshop, open_workshop, run


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return open_workshop(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="session")
def straight(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the workshop's config without interruption. Copy it before changing it."""
    output = tmp_path_factory.mktemp("straight") / "run"
    assert run("train", workshop.config, "--output", output) == 0
    return output


@pytest.fixture(scope="session")
def trained(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short training run, with its average. It is long enough that rounding changes no output."""
    output = tmp_path_factory.mktemp("trained") / "run"
    settings = ["training.max_steps=400", "model.d_model=32", "model.d_ff=64", "model.dropout=0.0",
                "training.log_every=20", "validation.every_steps=40",
                "schedule.warmup_steps=40"]  # fmt: skip
    assert run("train", workshop.config, *settings, "--output", output) == 0
    assert run("average", output, "--last", "3") == 0
    return output


@pytest.fixture(scope="session")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Kitchen:
    return open_kitchen(tmp_path_factory.mktemp("kitchen"))


@pytest.fixture(scope="session")
def cooked(kitchen: Kitchen, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a recipe that ran without interruption. Copy it before changing it."""
    work = tmp_path_factory.mktemp("cooked") / "numbers"
    assert kitchen.cook(work, "--data", kitchen.data) == 0
    return work
