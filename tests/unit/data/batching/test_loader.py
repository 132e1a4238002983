import multiprocessing
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.memory_corpus import MemoryCorpus

from transept.data.batching.feed import Feed
from transept.data.batching.mixture import Mixture
from transept.data.config import BatchConfig
from transept.errors import ConfigError, DataError
from transept.training.batches import Loaded, Loader

CONFIG = BatchConfig(
    source_tokens=128, target_tokens=128, tile=16, max_length=32, window=60, micro_batches=4
)


def corpus(n: int = 150) -> MemoryCorpus:
    chance = np.random.default_rng(0)

    def sentence() -> list[int]:
        return [*chance.integers(4, 1000, chance.integers(0, 20)).tolist(), 1]

    return MemoryCorpus([sentence() for _ in range(n)], [sentence() for _ in range(n)])


FEED = Feed(mixture=Mixture([corpus()]), config=CONFIG, seed=1)


def take(feed: Feed, n: int, workers: int = 0) -> list[Loaded]:
    with Loader(feed, workers) as loader:
        return list(islice(loader, n))


def same(one: list[Loaded], other: list[Loaded]) -> bool:
    return len(one) == len(other) and all(
        header == expected and torch.equal(block, same_block)
        for (header, block), (expected, same_block) in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("workers", [1, 4])
def test_batches_do_not_depend_on_workers(workers: int) -> None:
    """Covers several windows and the end of the epoch."""
    expected = take(FEED, 75)
    assert expected[-1][0].next.epoch > 1
    assert same(take(FEED, 75, workers), expected)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [0, 3])
def test_loader_resumes_from_saved_position(workers: int) -> None:
    whole = take(FEED, 40)
    position = whole[16][0].next
    assert same(take(replace(FEED, start=position), 23, workers), whole[17:])


@pytest.mark.parametrize("world_size", [2, 4])
def test_ranks_divide_each_global_batch(world_size: int) -> None:
    whole = take(FEED, 20)
    ranks = [
        take(replace(FEED, rank=rank, world_size=world_size), 20) for rank in range(world_size)
    ]
    for number, (header, block) in enumerate(whole):
        shares = [batches[number] for batches in ranks]
        assert {share.hash for share, _ in shares} == {header.hash}
        assert {share.n_target_tokens for share, _ in shares} == {header.n_target_tokens}
        mine = [list(share.cut(part)) for share, part in shares]
        for index, (shape, *sides) in enumerate(header.cut(block)):
            own, *own_sides = mine[index % world_size][index // world_size]
            assert own == shape
            assert all(map(torch.equal, own_sides, sides))


def test_each_rank_gets_at_least_one_micro_batch() -> None:
    whole = take(FEED, 20)
    shares = [take(replace(FEED, rank=rank, world_size=3), 20) for rank in range(3)]
    for number, (header, _) in enumerate(whole):
        shapes = [batches[number][0].shapes for batches in shares]
        assert list(map(len, shapes)) == [2, 1, 1]
        assert sum(shape.n_pairs for share in shapes for shape in share) == header.n_pairs
    with pytest.raises(ConfigError, match="micro_batches: 4 cannot be divided among 5 ranks"):
        replace(FEED, world_size=5)
    with pytest.raises(ConfigError, match="rank 2 is not below the world size 2"):
        replace(FEED, rank=2, world_size=2)


@pytest.mark.parametrize("workers", [0, 2])
def test_loader_ends_after_given_epochs(workers: int) -> None:
    with Loader(replace(FEED, epochs=1), workers) as loader:
        assert sum(header.n_pairs for header, _ in loader) == 150
        assert next(loader, None) is None


@pytest.mark.parametrize("workers", [0, 1])
def test_damaged_corpus_raises_with_and_without_workers(workers: int) -> None:
    damaged = corpus()
    damaged.source_lengths[3] += 1
    feed = replace(FEED, mixture=Mixture([damaged]), epochs=1)
    with (
        pytest.raises(
            DataError, match="source sentences of a corpus do not have the recorded"
        ) as caught,
        Loader(feed, workers) as loader,
    ):
        list(loader)
    if workers:
        assert caught.value.__notes__[0].startswith("In loader worker 1 of 1:\nTraceback")
    assert multiprocessing.active_children() == []


def test_killed_worker_is_reported() -> None:
    with Loader(FEED, workers=2, prefetch=1) as loader:
        next(loader)
        victim = next(p for p in multiprocessing.active_children() if "1 of 2" in p.name)
        victim.kill()
        with pytest.raises(DataError, match="worker 1 of 2 was killed by signal 9"):
            list(islice(loader, 20))
    assert multiprocessing.active_children() == []


def test_close_ends_iteration_and_is_idempotent() -> None:
    loader = Loader(FEED, workers=1)
    next(loader)
    loader.close()
    loader.close()
    assert next(loader, None) is None
    assert multiprocessing.active_children() == []


def test_negative_worker_count_is_rejected() -> None:
    with pytest.raises(ConfigError, match="workers must be at least 0"):
        Loader(FEED, workers=-1)


def test_worker_does_not_import_torch() -> None:
    """Importing it would take seconds and a quarter of a gigabyte."""
    modules = "transept.data.batching.feed, transept.runtime.workers"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SCRIPT = """
import multiprocessing, os, signal, sys, time
from transept.data.config import BatchConfig
from transept.data.batching.feed import Feed
from tests.memory_corpus import MemoryCorpus
from transept.data.batching.mixture import Mixture

if __name__ == "__main__":
    from transept.training.batches import Loader  # workers do not need torch
    corpus = MemoryCorpus([[4, 1]] * 5000, [[5, 1]] * 5000)
    config = BatchConfig(source_tokens=64, target_tokens=64, tile=8, max_length=8)
    loader = Loader(Feed(mixture=Mixture([corpus]), config=config, seed=1), workers=2)
    next(loader)
    print(*(process.pid for process in multiprocessing.active_children()), flush=True)
    {then}
"""


def start(tmp_path: Path, then: str) -> "subprocess.Popen[str]":
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(then=then))
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(script)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def gone(pids: list[int], within: float = 120) -> bool:
    end = time.monotonic() + within
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, pids))


needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")


@needs_proc
def test_workers_exit_when_the_program_is_killed(tmp_path: Path) -> None:
    program = start(tmp_path, then="time.sleep(600)")
    assert program.stdout is not None
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(alive, pids))
    program.kill()
    program.communicate()
    assert gone(pids)


@needs_proc
def test_workers_ignore_signals_and_exit_with_the_program(tmp_path: Path) -> None:
    """Ctrl-C and torchrun signal the whole group, and the trainer must be able to save first.

    This program then forgets to close its loader.
    """
    then = """
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append("term"))
    signal.signal(signal.SIGINT, lambda *_: heard.append("int"))
    os.killpg(0, signal.SIGTERM)
    os.killpg(0, signal.SIGINT)
    for _ in range(100):
        next(loader)
    print(*sorted(heard))
    """
    program = start(tmp_path, then)
    output, errors = program.communicate(timeout=120)
    assert (program.returncode, errors) == (0, "")
    pids, heard = output.splitlines()
    assert heard == "int term"
    assert gone([int(pid) for pid in pids.split()])
