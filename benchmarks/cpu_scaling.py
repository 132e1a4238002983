"""Scaling of training from one core to two: target tokens per second.

A global batch of two micro-batches is trained by one rank on one core, by two ranks on two cores,
and by two independent processes on two cores, each with a whole batch. The last shows how much the
cores slow each other down (memory, clock). The rest is the cost of communication. The three run
interleaved, batch by batch, and never at the same time.

    python benchmarks/cpu_scaling.py [--quick] [--json FILE]
"""

import multiprocessing
import os
import socket
import time
from multiprocessing.connection import Connection

import torch
from measuring import Goal, Row, parser_of, report
from workload import MODELS, bucketed, fresh_update

from transept.runtime.device import Runtime
from transept.runtime.distributed import join_world
from transept.training.batches import MicroBatch

WORK = "train small"
ONE, TWO, APART = "1 rank, 1 core", "2 ranks, 2 cores", "2 processes without communication, 2 cores"


def worker(connection: Connection, core: int, environment: dict[str, str], budget: int) -> None:
    """Train on a batch on each request, and send back the time it took."""
    os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.update(environment)
    with join_world(600.0, None, print) as world:
        config = MODELS["small"]
        update = fresh_update(config, Runtime(torch.device("cpu"), "fp32", world))
        pairs = bucketed(config.vocab_size, 2, budget)
        batches = [MicroBatch(p.batch.source, p.batch.target, n) for n, p in enumerate(pairs)]
        tokens = sum(p.n_target_tokens for p in pairs)
        for step in iter(connection.recv, None):
            start = time.perf_counter()
            update(step, batches[world.rank :: world.size], tokens)
            connection.send((time.perf_counter() - start, tokens))


def start_workers(budget: int) -> list[Connection]:
    """Two ranks, then two independent processes, each on one core."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = str(found.getsockname()[1])
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    environments = [world | {"RANK": rank, "LOCAL_RANK": rank} for rank in ("0", "1")] + [{}, {}]
    cores = sorted(os.sched_getaffinity(0))[:2] * 2
    context = multiprocessing.get_context("spawn")
    connections = []
    for core, environment in zip(cores, environments, strict=True):
        ours, theirs = context.Pipe()
        args = (theirs, core, environment, budget)
        context.Process(target=worker, args=args, daemon=True).start()
        connections.append(ours)
    return connections


def rate(workers: list[Connection], step: int, batches: int) -> float:
    """Target tokens per second of these workers together, for `batches` global batches."""
    for connection in workers:
        connection.send(step)
    answers: list[tuple[float, int]] = [connection.recv() for connection in workers]
    return batches * answers[0][1] / max(seconds for seconds, _ in answers)


def main() -> None:
    arguments = parser_of(__doc__, quick="small batches, under a minute").parse_args()
    budget, repetitions = (250, 4) if arguments.quick else (1250, 12)
    workers = start_workers(budget)
    turns = {ONE: (workers[2:3], 1), TWO: (workers[:2], 1), APART: (workers[2:], 2)}
    rates: dict[str, list[float]] = {name: [] for name in turns}
    for step in range(1, repetitions + 2):
        for name, (some, batches) in turns.items():
            measured = rate(some, step, batches)
            if step > 1:  # the first warms up
                rates[name].append(measured)
    for connection in workers:
        connection.send(None)
    rows = [Row.of(WORK, name, values, "target tokens/s") for name, values in rates.items()]
    shares = {
        name: Row.of(
            WORK,
            f"{name} / twice {ONE}",
            [a / (2 * b) for a, b in zip(rates[name], rates[ONE], strict=True)],
            "×",
        )
        for name in (TWO, APART)
    }
    goal = Goal.at_least("efficiency of 2 ranks on 2 cores", shares[TWO].value, 0.8)
    report("cpu_scaling", [*rows, *shares.values()], [goal], ["torch"], arguments.json)


if __name__ == "__main__":
    main()
