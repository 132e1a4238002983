"""`transept serve` with a real model and real text, compared with offline decoding.

    python benchmarks/served.py --model DIR --text FILE [--device cuda] [--seconds 8] [--json FILE]

Clients run in separate processes. Each sends some lines of FILE, waits for the answer and sends
again: first one client, then many with a sentence each, then many with several sentences each.
Finally, all lines are translated in one call of the Python API.
"""

import asyncio
import json
import multiprocessing
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from measuring import Row, parser_of, report, seconds

import transept

LOADS = [(1, 1), (50, 1), (200, 1), (50, 20)]
"""Clients, and sentences per request."""
PROCESSES = 6
OFFLINE_ROUNDS = 3


class Answer(NamedTuple):
    """The answer to a request."""

    seconds: float
    n_sentences: int
    status: int


async def converse(port: int, texts: Sequence[str], at_once: int, until: float) -> list[Answer]:
    """Send requests one after another over one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seen: list[Answer] = []
    at = 0
    while (start := time.perf_counter()) < until:
        sent = [texts[(at + k) % len(texts)] for k in range(at_once)]
        at += at_once
        body = json.dumps({"q": sent, "source": "en", "target": "de"}).encode()
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        got = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", got)
        assert length is not None, got
        await reader.readexactly(int(length[1]))
        status = int(got.split()[1])
        seen.append(Answer(time.perf_counter() - start, at_once, status))
        if status != 200:
            await asyncio.sleep(0.2)
    writer.close()
    return seen


def client_process(
    port: int, texts: Sequence[str], clients: Sequence[int], at_once: int, until: float
) -> list[Answer]:
    async def run_clients() -> list[Answer]:
        # Each client starts at another line of the text.
        starts = (37 * client % len(texts) for client in clients)
        each = (converse(port, [*texts[at:], *texts[:at]], at_once, until) for at in starts)
        return [answer for seen in await asyncio.gather(*each) for answer in seen]

    return asyncio.run(run_clients())


def answers_of(
    port: int, texts: Sequence[str], clients: int, at_once: int, seconds: float
) -> tuple[list[Answer], float]:
    """The answers that clients got, and the time until the last one."""
    n_processes = min(PROCESSES, clients)
    with multiprocessing.get_context("fork").Pool(n_processes) as pool:
        pool.map(int, range(n_processes))  # wait until all processes run
        start = time.perf_counter()
        shares = [range(first, clients, n_processes) for first in range(n_processes)]
        parts = [(port, texts, share, at_once, start + seconds) for share in shares]
        answers = [one for part in pool.starmap(client_process, parts) for one in part]
        took = time.perf_counter() - start
    rejected = sum(answer.status != 200 for answer in answers)
    assert not rejected, f"{rejected} requests were rejected"
    return answers, took


def load(port: int, texts: Sequence[str], clients: int, at_once: int, seconds: float) -> list[Row]:
    answers, took = answers_of(port, texts, clients, at_once, seconds)
    work = f"{clients} client{'s' * (clients > 1)}, {at_once} at once"
    percent = statistics.quantiles([1000 * answer.seconds for answer in answers], n=100)
    found = {"p50": percent[49], "p95": percent[94], "p99": percent[98]}
    rate = sum(answer.n_sentences for answer in answers) / took
    return [
        Row.once(work, "server", rate, "sentences/s"),
        *(Row.once(work, name, value, "ms") for name, value in found.items()),
    ]


@contextmanager
def serving(*options: str) -> Iterator[tuple["subprocess.Popen[str]", int, float]]:
    """A server, its port, and the seconds until it was ready."""
    command = [sys.executable, "-m", "transept", "serve", "--port", "0", *options]
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r":(\d+)$", said.strip())
        assert found is not None, said
        try:
            yield process, int(found[1]), time.perf_counter() - start
        finally:
            process.terminate()


def offline(model: Path, device: str, texts: Sequence[str]) -> Row:
    transducer = transept.load(model, device=device)
    times = seconds(lambda: transducer.translate(texts), OFFLINE_ROUNDS)
    rates = [len(texts) / took for took in times]
    return Row.of(f"{len(texts):,} sentences in one call", "Python", rates, "sentences/s")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--model", type=Path, required=True, help="model directory")
    parser.add_argument("--text", type=Path, required=True, help="one sentence per line")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=8.0, help="seconds per load")
    arguments = parser.parse_args()
    texts = arguments.text.read_text(encoding="utf-8").splitlines()
    model = ("--model", f"en-de={arguments.model}")
    with serving(*model, "--device", arguments.device) as (_, port, start):
        rows = [Row.once("start", "server", start, "s")]
        load(port, texts, 50, 1, arguments.seconds / 4)
        for clients, at_once in LOADS:
            rows += load(port, texts, clients, at_once, arguments.seconds)
    rows.append(offline(arguments.model, arguments.device, texts))
    gpu = torch.cuda.get_device_name() if arguments.device.startswith("cuda") else None
    report("served", rows, [], ["torch", "triton", "uvicorn"], arguments.json, gpu)


if __name__ == "__main__":
    main()
