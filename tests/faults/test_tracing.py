"""The harness itself must notice what it is there to notice."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import tracing

ROOT = Path(__file__).resolve().parents[2]

WRITING = """
import os, sys
from pathlib import Path
from tests.faults import tracing

place, careful, lasting = Path(sys.argv[1]), sys.argv[2] == "careful", int(sys.argv[3])
pid = os.fork()
if pid == 0:
    tracing.submit()
    with open(place / "part", "wb") as file:
        file.write(b"content")
        file.flush()
        if careful:
            os.fsync(file.fileno())
    os.rename(place / "part", place / "file")
    if careful:
        os.fsync(os.open(place, os.O_RDONLY))
    (place / "last").mkdir()
    os._exit(0)
ledger = tracing.Ledger(os.path.realpath(place))
at_the_last = lambda call: call.name in ("mkdir", "mkdirat")
status = tracing.follow(pid, at_the_last, ledger)
assert os.WIFSIGNALED(status), status
ledger.cut_power(min(lasting, len(ledger.names)), __import__("random").Random(1))
"""


def after_power_cut(place: Path, care: str, lasting: int) -> dict[str, bytes]:
    if reason := _unavailable():
        pytest.skip(reason)
    words = [sys.executable, "-c", WRITING, str(place), care, str(lasting)]
    subprocess.run(words, check=True, cwd=ROOT)
    return {path.name: path.read_bytes() for path in place.iterdir()}


def _unavailable() -> str:
    code = "from tests.faults import tracing; print(tracing.unavailable() or '')"
    words = [sys.executable, "-c", code]
    return subprocess.run(
        words, check=True, cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()


def test_what_was_flushed_is_there_and_what_comes_after_the_kill_is_not(tmp_path: Path) -> None:
    assert after_power_cut(tmp_path, "careful", 0) == {"file": b"content"}


def test_what_was_not_flushed_is_lost_and_its_name_too(tmp_path: Path) -> None:
    for lasting, names in ((0, set()), (1, {"part"}), (2, {"file"})):
        place = tmp_path / str(lasting)
        place.mkdir()
        left = after_power_cut(place, "careless", lasting)
        assert set(left) == names
        assert b"content" not in left.values()


def test_a_lost_directory_takes_all_that_is_in_it(tmp_path: Path) -> None:
    ledger = tracing.Ledger(str(tmp_path), names=[tracing.Naming(str(tmp_path / "new"))])
    (tmp_path / "new/below").mkdir(parents=True)
    ledger.cut_power(1, random.Random(0))
    assert (tmp_path / "new/below").exists()
    ledger.cut_power(0, random.Random(0))
    assert not (tmp_path / "new").exists()


def test_what_is_appended_costs_nothing_that_was_flushed_before(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"flushed, and then more")
    for seed in range(20):
        ledger = tracing.Ledger(str(tmp_path), unflushed={str(path)}, safe={str(path): 7})
        ledger.cut_power(0, random.Random(seed))
        assert path.read_bytes().startswith(b"flushed")
