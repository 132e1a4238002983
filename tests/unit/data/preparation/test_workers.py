import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from transept.data.cleaning import Cleaning
from transept.data.preparation.encode import ChunkEncoder
from transept.data.preparation.formats import Chunk, Tsv
from transept.data.preparation.workers import AHEAD, Workers
from transept.errors import DataError
from transept.text.tokenizer import Tokenizer


@pytest.fixture
def encoder(tokenizer: Tokenizer) -> ChunkEncoder:
    return ChunkEncoder([Tsv(Path("x.tsv"))], tokenizer, tokenizer, Cleaning())


def chunk(number: int) -> Chunk:
    return Chunk(0, np.array([number]), (b"house %d\tHaus %d" % (number, number),))


def test_results_come_in_order_and_only_a_few_chunks_are_read_ahead(encoder: ChunkEncoder) -> None:
    read: list[int] = []

    def stream() -> Iterator[Chunk]:
        for number in range(40):
            read.append(number)
            yield chunk(number)

    with Workers(encoder, 2) as workers:
        for number, (original, encoded) in enumerate(workers.encode(stream())):
            assert original.lines.tolist() == encoded.lines.tolist() == [number]
            assert len(read) <= number + 2 * AHEAD + 1


def test_a_worker_that_dies_is_reported(encoder: ChunkEncoder) -> None:
    with Workers(encoder, 1) as workers:
        results = workers.encode(chunk(number) for number in range(100))
        next(results)
        pid = workers.pids[0]
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(DataError, match=r"worker process ended \(exit code -9"):
            list(results)


def test_workers_mind_no_signal_but_their_parent(encoder: ChunkEncoder) -> None:
    with Workers(encoder, 1) as workers:
        results = workers.encode(chunk(number) for number in range(20))
        next(results)
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(workers.pids[0], number)
        assert len(list(results)) == 19


def test_workers_mind_none_from_their_first_moment_on() -> None:
    """In a process of its own, whose first child brings multiprocessing's resource tracker."""
    code = """
import multiprocessing, os, signal
from transept.data.preparation.workers import Workers
with Workers(None, 1) as workers:
    (worker,) = multiprocessing.active_children()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        os.kill(worker.pid, number)
print(worker.exitcode)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
