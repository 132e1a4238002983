"""Files that are cut short, altered, swapped or gone: in checkpoints, corpora and vocabularies."""

import logging
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.faults.children import Ended, demand, transept
from tests.faults.fault import Fault, times
from tests.faults.laboratory import RUN, Bench, demand_same_tensors

FULL_RESUME = 20
"""Of so many damaged checkpoints, one run is trained to its end."""


# --- ways to spoil a file --------------------------------------------------------------------


def _cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size))


def _lengthen(path: Path, chance: random.Random) -> None:
    with path.open("ab") as file:
        file.write(chance.randbytes(chance.randint(1, 4096)))


def _flip_bits(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for place in chance.sample(range(8 * len(content)), chance.choice([1, 1, 1, 2, 8])):
        content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def _zero_block(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    size = min(len(content), chance.choice([1, 16, 512, 4096]))
    start = chance.randrange(len(content) - size + 1)
    if not any(content[start : start + size]):  # zeros already: that would change nothing
        return _flip_bits(path, chance)
    content[start : start + size] = bytes(size)
    path.write_bytes(content)
    return None


def _remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def _make_directory(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


SPOILING: Sequence[Callable[[Path, random.Random], None]] = (
    _cut, _cut, _lengthen, _flip_bits, _flip_bits, _flip_bits, _zero_block, _zero_block, _remove,
    _make_directory,
)  # fmt: skip


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _equal(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


def _swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


# --- checkpoints -----------------------------------------------------------------------------


def _checkpoint(bench: Bench) -> None:
    """The newest is spoilt, or two are by a swap; the newest of those that are whole is used."""
    from transept.checkpoint import CHECKPOINTS, Checkpoints

    shutil.copytree(bench.lab.straight, bench.directory / RUN)
    checkpoints = Checkpoints(bench.directory / RUN / CHECKPOINTS)
    third, second, first = (checkpoints.path(step) for step in checkpoints.steps()[-3:])
    spoilt = _spoil_checkpoint(bench.chance, first, second)
    expected = third if second in spoilt else second
    with _warnings_of("transept.checkpoint") as said:
        found = checkpoints.newest()
    demand(found is not None, "no checkpoint was found")
    assert found is not None
    demand(found.directory == expected, f"{found.directory.name} was used; said: {said}")
    for directory in spoilt:
        named = [line for line in said if directory.name in line]
        demand(
            named and "using the previous" in named[0],
            f"{directory.name} is not named: {said}",
        )
    if bench.case % FULL_RESUME == 0:
        ended = bench.train()
        ended.demand(0, spoilt[0].name, "resuming from step")
        bench.demand_same_run()


def _spoil_checkpoint(chance: random.Random, newest: Path, before: Path) -> list[Path]:
    """Spoil the newest, and tell which checkpoints have suffered."""
    files = _files(newest)
    way = chance.randrange(12)
    if way == 0:  # two files of one checkpoint
        while True:
            one, other = chance.sample(files, 2)
            if not _equal(one, other):
                _swap(one, other)
                return [newest]
    if way == 1:  # a file of the checkpoint before, a mistake in copying
        names = [path.relative_to(newest) for path in files]
        name = chance.choice([n for n in names if not _equal(newest / n, before / n)])
        shutil.copyfile(before / name, newest / name)
        return [newest]
    if way == 2:  # the two directories
        _swap(newest, before)
        return [newest, before]
    path = chance.choice(files)
    chance.choice(SPOILING)(path, chance)
    return [newest]


class _warnings_of(logging.Handler):  # noqa: N801  (used as a context manager)
    """What a logger warns of, as a list."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._logger = logging.getLogger(name)
        self._said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())

    def __enter__(self) -> list[str]:
        self._logger.addHandler(self)
        return self._said

    def __exit__(self, *error: object) -> None:
        self._logger.removeHandler(self)


def _all_checkpoints(bench: Bench) -> None:
    """Nothing whole is left: that is said, and nothing is thrown away or begun anew."""
    from transept.checkpoint import CHECKPOINTS, Checkpoints

    shutil.copytree(bench.lab.straight, bench.directory / RUN)
    checkpoints = Checkpoints(bench.directory / RUN / CHECKPOINTS)
    steps = checkpoints.steps()
    for step in steps:
        path = bench.chance.choice(_files(checkpoints.path(step)))
        bench.chance.choice(SPOILING)(path, bench.chance)
    bench.train().demand(4, "can be used", *(checkpoints.path(step).name for step in steps))
    demand(checkpoints.steps() == steps, "checkpoints were removed")


# --- corpora and vocabularies ----------------------------------------------------------------


def _demand_refusal(ended: Ended, path: Path) -> None:
    """Exit code 3, the file by name, and what to do about it."""
    cures = ("copy it again", "copy both again", "prepare", "tokenizer train")
    demand(ended.code != 0, f"{path.name} was spoilt, and nobody noticed")
    ended.demand(3)
    tail = ended.said[-600:]
    demand(
        path.name in ended.said or str(path.parent) in ended.said, f"{path} is not named: {tail}"
    )
    demand(any(cure in ended.said for cure in cures), f"no cure is named: {tail}")


def _corpus(bench: Bench) -> None:
    """Any file that a training reads: shards, their manifest, the vocabulary."""
    ids = bench.directory / "ids"
    shutil.copytree(bench.lab.ids("train"), ids)
    path = bench.chance.choice([file for file in _files(ids) if file.name != "dropped.tsv"])
    bench.chance.choice(SPOILING)(path, bench.chance)
    _demand_refusal(bench.train(f'data.train=[{{path="{ids}"}}]', "training.max_steps=1"), path)


def _vocabulary(bench: Bench) -> None:
    directory = bench.directory / "vocabulary"
    shutil.copytree(bench.lab.tokenizer, directory)
    path = bench.chance.choice(_files(directory))
    bench.chance.choice(SPOILING)(path, bench.chance)
    words = ("tokenizer", "apply", "--tokenizer", directory, bench.lab.directory / "dev.en")
    _demand_refusal(bench.child(lambda: transept(*words)).wait(), path)


def _metrics(bench: Bench) -> None:
    """The log is no condition for training: what can be read of it is kept."""
    bench.begin_half()
    path = bench.directory / RUN / "metrics.jsonl"
    bench.chance.choice(SPOILING)(path, bench.chance)
    if path.is_dir():
        path.rmdir()
    bench.train().demand(0)
    demand_same_tensors(path.parent, bench.lab.straight)


FAULTS = [
    Fault(
        name="spoil-checkpoint",
        does="damage to a checkpoint",
        promise="noticed and named; the one before is used",
        happen=_checkpoint,
        cases=times(60, 1000),
    ),
    Fault(
        name="spoil-all",
        does="damage to every checkpoint of a run",
        promise="each is named; nothing is removed or started again",
        happen=_all_checkpoints,
        cases=times(3, 30),
    ),
    Fault(
        name="spoil-corpus",
        does="damage to a prepared corpus",
        promise="noticed before training: the file, and the cure",
        happen=_corpus,
        cases=times(20, 300),
    ),
    Fault(
        name="spoil-vocabulary",
        does="damage to a vocabulary",
        promise="noticed before it is used: the file, and the cure",
        happen=_vocabulary,
        cases=times(20, 300),
    ),
    Fault(
        name="spoil-log",
        does="damage to metrics.jsonl",
        promise="training resumes, bit for bit",
        happen=_metrics,
        cases=times(2, 30),
    ),
]
