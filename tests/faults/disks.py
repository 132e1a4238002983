"""Disks that are full, or may not be written to."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.faults import mounts
from tests.faults.children import Ended, apart, demand, transept
from tests.faults.fault import Fault, drawn, times
from tests.faults.laboratory import BEGUN, LAST_STEP, RUN, Bench, Laboratory

DISK = 4 << 20
PAGE = 4096
FILES = 400
"""So many files a disk can hold, however small they are."""
OUT_OF_ROOM = "No space left on device"
READ_ONLY = "Read-only file system"
NOBODY = 65534


# --- full ------------------------------------------------------------------------------------


def _on_a_disk(bench: Bench, work: Callable[[Bench], None]) -> None:
    """Let the case happen on a small disk of its own."""
    place = bench.directory / "disk"
    place.mkdir()

    def there() -> None:
        mounts.enter()
        mounts.mount_disk(place, f"size={DISK},nr_inodes={FILES}")
        work(Bench(bench.lab, bench.case, bench.chance, place))

    apart(there, bench.directory)


def _fill(place: Path, pages: int) -> Path:
    """Leave so many pages free."""
    ballast = place / "ballast"
    with ballast.open("wb") as file:
        room = os.statvfs(place)
        os.posix_fallocate(file.fileno(), 0, (room.f_bavail - pages) * PAGE)
    return ballast


def _use_up_files(place: Path, left: int) -> Path:
    """Leave room for so many more files."""
    ballast = place / "ballast"
    ballast.mkdir()
    for number in range(os.statvfs(place).f_favail - left):
        (ballast / str(number)).touch()
    return ballast


def _make_room(ballast: Path) -> None:
    if ballast.is_dir():
        shutil.rmtree(ballast)
    else:
        ballast.unlink()


def _full_in_training(bench: Bench) -> None:
    """There is room for a part of the run: for its log, for some checkpoints, for half a one."""
    _on_a_disk(
        bench, lambda inside: _train_out_of_room(inside, _fill(inside.directory, bench.case))
    )


def _out_of_files_in_training(bench: Bench) -> None:
    _on_a_disk(
        bench,
        lambda inside: _train_out_of_room(inside, _use_up_files(inside.directory, bench.case)),
    )


def _train_out_of_room(bench: Bench, ballast: Path) -> None:
    ended = _said_elsewhere(bench, *bench.lab.train_words)
    _demand_clear(ended, OUT_OF_ROOM, RUN)
    _demand_nothing_corrupt(bench.directory / RUN)
    _make_room(ballast)
    bench.demand_recovery()


def _full_in_preparation(bench: Bench) -> None:
    def prepare(inside: Bench) -> None:
        ballast = _fill(inside.directory, bench.case)
        words = (*bench.lab.prepare_words("train"), "--output", "ids")
        _demand_clear(_said_elsewhere(inside, *words), OUT_OF_ROOM, "ids")
        _make_room(ballast)
        inside.child(lambda: transept(*words)).wait().demand(0)
        inside.demand_same_corpus(inside.directory / "ids")

    _on_a_disk(bench, prepare)


def _said_elsewhere(bench: Bench, *words: object) -> Ended:
    """A command that works on the full disk, and whose words are kept on another."""
    outside = bench.directory.parent

    def there() -> int:
        os.chdir(bench.directory)
        return transept(*words)

    return Bench(bench.lab, bench.case, bench.chance, outside).child(there).wait()


def _demand_clear(ended: Ended, why: str, where: str) -> None:
    """Either there was room after all, or it is said why not, where, and what to do."""
    if ended.code == 0:
        return
    tail = ended.said[-600:]
    demand(ended.code in (1, 3, 4), f"exit code {ended.code}:\n{tail}")
    for phrase in (why, where):
        demand(phrase in ended.said, f"{phrase!r} is not said:\n{tail}")
    demand("Traceback" not in ended.said, f"a traceback:\n{tail}")
    cures = ("free some", "Free some", "Free space", "choose another")
    demand(any(cure in ended.said for cure in cures), f"no cure is named:\n{tail}")


def _demand_nothing_corrupt(run: Path) -> None:
    """Whatever stands under its own name is whole."""
    import json

    from transept.checkpoint import CHECKPOINTS, Bundle

    for path in sorted((run / CHECKPOINTS).glob("step-*")):
        Bundle.open(path)
    log = run / "metrics.jsonl"
    for line in log.read_bytes().splitlines() if log.exists() else []:
        try:
            json.loads(line)
        except ValueError:
            demand(False, f"a line of the log is cut: {line!r}")


def _pages_of_run(lab: Laboratory) -> int:
    """What a run takes, and a checkpoint more: with so many pages free it is never in want."""
    files = [path for path in lab.straight.rglob("*") if path.is_file()]
    return sum(-(-path.stat().st_size // PAGE) for path in files) * 4 // 3


def _files_of_run(lab: Laboratory) -> int:
    return len(list(lab.straight.rglob("*"))) * 4 // 3


def _pages_of_corpus(lab: Laboratory) -> int:
    files = [path for path in lab.ids("train").rglob("*") if path.is_file()]
    return sum(-(-path.stat().st_size // PAGE) for path in files) + 4


# --- read-only -------------------------------------------------------------------------------


def _read_only_run(bench: Bench) -> None:
    """The place of the run cannot be written to: as it begins, or as it goes on."""

    def train(inside: Bench) -> None:
        if bench.case % 2:
            inside.begin_half()
        mounts.make_read_only(inside.directory)
        _demand_clear(_said_elsewhere(inside, *bench.lab.train_words), READ_ONLY, RUN)
        mounts.take_back(inside.directory)
        inside.demand_recovery()

    _on_a_disk(bench, train)


def _read_only_meanwhile(bench: Bench) -> None:
    """The checkpoints' directory becomes read-only in the middle of the run."""
    step = bench.chance.randint(BEGUN + 1, LAST_STEP - 1)

    def note(line: dict[str, Any]) -> None:
        if line["kind"] == "step" and line["step"] == step:
            mounts.make_read_only(Path(RUN).absolute() / "checkpoints")

    def train() -> int:
        from transept.errors import TranseptError

        mounts.enter()
        try:
            return bench.lab.train_watched(note)
        except TranseptError as error:
            print(error)
            return error.exit_code

    bench.begin_half()
    ended = bench.child(train).wait()
    ended.demand(4, READ_ONLY)
    bench.demand_recovery()


def _read_only_preparation(bench: Bench) -> None:
    def prepare(inside: Bench) -> None:
        words = (*bench.lab.prepare_words("train"), "--output", "ids")
        mounts.make_read_only(inside.directory)
        _demand_clear(_said_elsewhere(inside, *words), READ_ONLY, "ids")
        mounts.take_back(inside.directory)
        inside.child(lambda: transept(*words)).wait().demand(0)
        inside.demand_same_corpus(inside.directory / "ids")

    _on_a_disk(bench, prepare)


def _read_only_corpus(bench: Bench) -> None:
    """A corpus that nobody may change, vocabulary and all; checkpoints must still be removable."""
    ids = bench.directory / "ids"
    shutil.copytree(bench.lab.ids("train"), ids)
    for path in [ids, *ids.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    words = (*bench.lab.train_words, f'data.train=[{{path="{ids}"}}]', "checkpoint.keep=1")

    def train() -> int:
        if os.geteuid() == 0:  # to whom modes do not apply
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return transept(*words)

    try:
        bench.lab.directory.chmod(0o755)
        bench.directory.chmod(0o777)
        bench.child(train).wait().demand(0)
        bench.demand_same_run()
        kept = list((bench.directory / RUN / "checkpoints").iterdir())
        demand(len(kept) <= 2, f"more than the newest and the best are kept: {kept}")
    finally:
        for path in [ids, *ids.rglob("*")]:
            path.chmod(0o755)


FAULTS = [
    Fault(
        name="full-train",
        does="disk full at each page of a run: log, save, config",
        promise="clear error, nothing corrupt; with free space it resumes, bit for bit",
        happen=_full_in_training,
        cases=drawn(_pages_of_run, 6),
        unavailable=mounts.unavailable,
    ),
    Fault(
        name="full-files",
        does="no space for another file, at each file of a run",
        promise="clear error, nothing corrupt; with free space it resumes, bit for bit",
        happen=_out_of_files_in_training,
        cases=drawn(_files_of_run, 3),
        unavailable=mounts.unavailable,
    ),
    Fault(
        name="full-prepare",
        does="disk full at each page of data prepare",
        promise="clear error; with free space the same command gives the same corpus",
        happen=_full_in_preparation,
        cases=drawn(_pages_of_corpus, 4),
        unavailable=mounts.unavailable,
    ),
    Fault(
        name="read-only-run",
        does="a run's directory is read-only",
        promise="clear error; then it resumes, bit for bit",
        happen=_read_only_run,
        cases=times(2, 4),
        unavailable=mounts.unavailable,
    ),
    Fault(
        name="read-only-save",
        does="checkpoints become read-only in mid-run",
        promise="clear error; then it resumes, bit for bit",
        happen=_read_only_meanwhile,
        cases=times(1, 10),
        unavailable=mounts.unavailable,
    ),
    Fault(
        name="read-only-prepare",
        does="data prepare into a read-only directory",
        promise="clear error; then the same command gives the corpus",
        happen=_read_only_preparation,
        cases=times(1, 2),
        unavailable=mounts.unavailable,
    ),
    Fault(
        name="read-only-corpus",
        does="training on files that may not be changed",
        promise="trains, and removes old checkpoints as ever",
        happen=_read_only_corpus,
        cases=times(1, 2),
    ),
]
