"""A server under load, against the same sentences decoded offline in one call.

    python benchmarks/server.py [--quick] [--json FILE]

A small model of random weights is served by a process of its own on the loopback
interface. Clients send one sentence after another, all at once; then the same sentences are
translated by `Transducer.translate`, in this process, while the server rests.
"""

import argparse
import asyncio
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import torch
from measuring import Goal, Row, report

from transept import ModelConfig, Transducer, Transformer
from transept.text.training import train_tokenizer

CLIENTS = 50
WORDS = """the a one two three house tree river bridge stone light morning evening people city
train window letter question answer number small large old new quiet green white goes comes sees
finds builds writes reads keeps near under over behind before after because while and or but"""
SERVER = """
import sys, torch
sys.path.insert(0, {here!r})
from server import model
from transept.serving.app import create_app
from transept.serving.models import Served
from transept.serving.hangups import Hangups
from transept.serving.running import run
from transept.serving.settings import ServerSettings
settings = ServerSettings(port={port})
run(create_app(settings, [Served("en", "de", model())]), settings, lambda address: None, Hangups())
"""


def model() -> Transducer:
    """A Transformer that says nothing sensible, and seldom ends before it must: hard work."""
    tokenizer = train_tokenizer([" ".join(WORDS.split())] * 20, vocab_size=400)
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=400, n_layers=2, d_model=128, d_ff=512, n_heads=4)
    return Transducer([Transformer(config)], tokenizer, tokenizer)


def sentences(seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    while True:
        yield " ".join(chance.choices(WORDS.split(), k=chance.randint(4, 14)))


async def load(url: str, seconds: float) -> tuple[list[float], list[str], Counter[int], float]:
    """Latencies, the sentences that were answered, statuses, and how long it took."""
    latencies: list[float] = []
    answered: list[str] = []
    statuses: Counter[int] = Counter()
    start = time.perf_counter()

    async def client(number: int, http: httpx.AsyncClient) -> None:
        for text in sentences(number):
            if time.perf_counter() - start > seconds:
                return
            begun = time.perf_counter()
            body = {"q": text, "source": "en", "target": "de"}
            answer = await http.post("/translate", json=body)
            statuses[answer.status_code] += 1
            if answer.status_code == 200:
                latencies.append(time.perf_counter() - begun)
                answered.append(text)

    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as http:
        await asyncio.gather(*(client(number, http) for number in range(CLIENTS)))
    return latencies, answered, statuses, time.perf_counter() - start


def serve() -> tuple["subprocess.Popen[bytes]", str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = SERVER.format(here=str(Path(__file__).parent), port=port)
    process = subprocess.Popen([sys.executable, "-c", code])
    url = f"http://127.0.0.1:{port}"
    while True:
        try:
            httpx.get(f"{url}/readyz").raise_for_status()
            return process, url
        except httpx.TransportError:
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="seconds instead of a minute")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    seconds = 4.0 if arguments.quick else 60.0
    process, url = serve()
    try:
        asyncio.run(load(url, 1.0))  # the first batches are slower
        latencies, answered, statuses, took = asyncio.run(load(url, seconds))
        process.send_signal(signal.SIGSTOP)
        transducer = model()
        start = time.perf_counter()
        transducer.translate(answered, source_language="en")
        offline = len(answered) / (time.perf_counter() - start)
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        exit_code = process.wait(60)
    online = len(answered) / took
    work = f"{CLIENTS} clients, {seconds:g} s"
    percent = statistics.quantiles(latencies, n=100)
    rows = [Row(work, name, 1000 * percent[at], "ms", 1000 * percent[at], 1000 * percent[at])
            for name, at in (("p50", 49), ("p95", 94), ("p99", 98))]  # fmt: skip
    rows.append(Row(work, "server", online, "sentences/s", online, online))
    rows.append(Row("the same sentences", "offline", offline, "sentences/s", offline, offline))
    faults = sum(n for status, n in statuses.items() if status not in (200, 429))
    goals = [
        Goal.at_least("throughput against offline decoding", online / offline, 0.7),
        Goal("answers that are neither 200 nor 429", faults, 0, faults == 0),
        Goal("exit code after SIGTERM", exit_code, 0, exit_code == 0),
    ]
    machine = f"{os.cpu_count()} cores, {os.uname().machine}"
    report("server", rows, goals, ["torch", "starlette", "uvicorn"], arguments.json, machine)


if __name__ == "__main__":
    main()
