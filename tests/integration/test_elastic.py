"""Ranks that are killed, hang, are stopped or fail, under torchrun."""

import os
import random
import signal
import socket
import time
from pathlib import Path

import pytest
from tests.integration.ranks import train
from tests.integration.test_training import assert_same_run
from tests.integration.torchrun import Job, start
from tests.integration.workshop import Workshop

from transept.checkpoint import Checkpoints
from transept.training.observers import read_metrics

QUICK = ("validation.every_steps=1000", "checkpoint.every_steps=10")
KILLS = 3


def starts(output: Path) -> list[int]:
    """The steps at which the run started or resumed."""
    lines = read_metrics(output / "metrics.jsonl")
    return [line["step"] for line in lines if line["kind"] == "start"]


def ranks_at_starts(output: Path) -> list[int]:
    lines = read_metrics(output / "metrics.jsonl")
    return [line["ranks"] for line in lines if line["kind"] == "start"]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_hangs_is_named_within_the_limit(
    workshop: Workshop, tmp_path: Path, rank: int
) -> None:
    settings = (*QUICK, "training.max_steps=100000", "distributed.patience=8")
    job = start(workshop, tmp_path / "run", *settings)
    job.wait_for_step(5)
    hanging = job.workers()[rank]
    os.kill(hanging, signal.SIGSTOP)
    began = time.monotonic()
    while not job.causes():
        assert time.monotonic() < began + 120
        time.sleep(0.1)
    os.kill(hanging, signal.SIGKILL)  # torchrun would do it half a minute later
    errors = job.end()
    cause = job.causes()[f"attempt_0/{1 - rank}"]
    assert f"rank {rank} on {socket.gethostname()} (step " in cause
    assert "does not respond and has made no progress for 8 s (distributed.patience)" in cause
    assert cause.removeprefix("RankError: ") in errors
    assert job.process.returncode == 1


@pytest.mark.slow
def test_sigterm_stops_all_ranks_with_a_checkpoint_and_a_cause(
    workshop: Workshop, tmp_path: Path
) -> None:
    settings = ("validation.every_steps=100000", "checkpoint.every_steps=none")
    job = start(workshop, tmp_path / "run", *settings, "training.max_steps=100000")
    job.wait_for_step(20)
    job.process.terminate()
    errors = job.end()
    assert "stopped after" in errors
    stopped = "RankError: stopped by a signal, with a checkpoint: start it again to resume"
    assert job.causes() == {"attempt_0/0": stopped, "attempt_0/1": stopped}
    assert Checkpoints(tmp_path / "run/checkpoints").steps() == [job.step]


@pytest.mark.slow
def test_permanent_failure_of_a_rank_ends_all_with_the_same_error(
    workshop: Workshop, tmp_path: Path
) -> None:
    job = start(workshop, tmp_path / "run", *QUICK, "training.max_steps=100000")
    job.wait_for_step(1)
    (tmp_path / "run/checkpoints").touch()  # where a directory should be
    errors = job.end()
    assert job.process.returncode == 1
    first, second = (job.causes()[f"attempt_0/{rank}"] for rank in (0, 1))
    assert "cannot be written" in first
    assert first.removeprefix("CheckpointError: ") in second
    assert f"rank 0 on {socket.gethostname()} failed" in second
    assert "cannot be written" in errors


@pytest.mark.slow
def test_a_rank_that_is_asked_to_stop_stops_all_and_torchrun_starts_them_again(
    workshop: Workshop, tmp_path: Path
) -> None:
    settings = ("validation.every_steps=1000", "checkpoint.every_steps=none")
    job = start(
        workshop, tmp_path / "run", *settings, "training.max_steps=150",
        options=("--max-restarts", "1"),
    )  # fmt: skip
    job.wait_for_step(20)
    job.signal(1, signal.SIGTERM)
    errors = job.end()
    assert job.process.returncode == 0, errors
    assert 20 <= starts(tmp_path / "run")[1] < 150


@pytest.mark.slow
def test_torchrun_reports_success_when_the_time_limit_is_reached(
    workshop: Workshop, tmp_path: Path
) -> None:
    """Torchrun would treat any other exit code as a failure and restart the ranks."""
    options = ("distributed.optimizer=sharded", "distributed.gradients=bf16", "--minutes", "0.03")
    job = start(workshop, tmp_path / "run", "training.max_steps=100000", *options)
    errors = job.end()
    assert job.process.returncode == 0, errors
    assert "out of time" in errors
    assert Checkpoints(tmp_path / "run/checkpoints").steps()[-1] == job.step


@pytest.mark.slow
def test_ranks_killed_at_random_moments_restart_and_the_run_stays_bit_identical(
    workshop: Workshop, tmp_path: Path
) -> None:
    chance = random.Random(10)
    settings = (*QUICK, "training.max_steps=150")
    train(workshop, (2, tmp_path / "straight", ("batch.micro_batches=4", *settings)))
    output = tmp_path / "killed"
    job = start(workshop, output, *settings, options=("--max-restarts", str(KILLS)))
    for _ in range(KILLS):
        job.wait_for_step(job.step + chance.randint(3, 20))
        time.sleep(chance.uniform(0, 0.2))
        before = job.workers()
        os.kill(chance.choice(before), signal.SIGKILL)
        killed, lines = time.monotonic(), len(starts(output))
        while len(starts(output)) == lines or set(job.workers()) & set(before):
            assert job.process.poll() is None, job.end()
            assert time.monotonic() < killed + 300
            time.sleep(0.05)
    errors = job.end()
    assert job.process.returncode == 0, errors
    assert "resuming from step" in errors
    assert_same_run(tmp_path / "straight", output)


def agent(workshop: Workshop, output: Path, name: str, port: int, *settings: str) -> Job:
    """One of two machines, from the point of view of torchrun."""
    options = (
        *("--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-id", "pair"),
        *("--rdzv-endpoint", f"localhost:{port}", "--max-restarts", "3"),
        *("--rdzv-conf", f"is_host={int(name == 'first')},last_call_timeout=15,join_timeout=300,"
          "keep_alive_interval=1,keep_alive_max_attempt=15"),
    )  # fmt: skip
    return start(workshop, output, *settings, ranks=1, options=options)


def wait_for_ranks(job: Job, ranks: int, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while ranks_at_starts(job.output)[-1] != ranks:
        assert job.process.poll() is None, job.end()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    job.wait_for_step(job.step + 20)


@pytest.mark.slow
def test_two_machines_continue_after_losing_one_and_adding_another(
    workshop: Workshop, tmp_path: Path
) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    settings = (*QUICK, "training.max_steps=100000", "distributed.patience=20")
    output = tmp_path / "run"
    first, second = (agent(workshop, output, name, port, *settings) for name in ("first", "second"))
    first.wait_for_step(20)
    assert ranks_at_starts(output) == [2]
    second.kill()
    wait_for_ranks(first, 1)
    third = agent(workshop, output, "third", port, *settings)
    wait_for_ranks(first, 2)
    for job in (first, third):
        job.process.terminate()
    for job in (first, third):
        job.end()
    assert ranks_at_starts(output) == [2, 1, 2]
    assert Checkpoints(output / "checkpoints").steps()[-1] == first.step
    numbers = [x["step"] for x in read_metrics(output / "metrics.jsonl") if x["kind"] == "step"]
    assert numbers == list(range(1, first.step + 1))
