"""The short form: some cases of every kind of fault. `make faults` is the long one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.faults.catalogue import FAULTS
from tests.faults.page import PAGE, renewed

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def score(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    """What became of the faults that were asked for, by name: one process tries them all."""
    asked = {
        item.callspec.params["name"] for item in request.session.items if hasattr(item, "callspec")
        and item.path == Path(__file__)
    }  # fmt: skip
    file = tmp_path_factory.mktemp("faults") / "score.json"
    words = [sys.executable, "-m", "tests.faults", "--short", "--json", str(file)]
    done = subprocess.run(
        [*words, "--only", *sorted(asked)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert file.exists(), done.stderr
    return {tally["name"]: tally for tally in json.loads(file.read_text())["faults"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", [fault.name for fault in FAULTS])
def test_what_happens_is_survived(score: dict[str, dict[str, Any]], name: str) -> None:
    tally = score[name]
    if tally["skipped"]:
        pytest.skip(tally["skipped"])
    assert not tally["broken"]
    assert tally["survived"] == tally["tried"] > 0


def test_the_page_tells_the_recorded_score() -> None:
    assert renewed(PAGE.read_text(encoding="utf-8")) == PAGE.read_text(encoding="utf-8")
