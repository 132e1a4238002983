"""A server under load, compared with offline decoding of the same sentences in one call.

    python benchmarks/server.py [--quick] [--json FILE]

A separate process serves a small model with random weights on the loopback interface. Many clients
send one sentence after another. Then `Transducer.translate` translates the same sentences in this
process while the server is paused. Each uses one thread, because the clients also need a core. Then
ten times the clients send ten sentences at a time, far more than the queue holds, and disconnect.
Finally, many clients disconnect during a translation or a stream.
"""

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
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import torch
from measuring import Goal, Row, parser_of, report

from transept import ModelConfig, Transducer, Transformer
from transept.text.training import train_tokenizer

CLIENTS = 50
VOCABULARY = 8_000
QUEUE = 200
SERVER = """
import sys, threading
sys.path.insert(0, {here!r})
from server import QUEUE, model
from transept.apps.serve.app import create_app
from transept.apps.serve.models import Served
from transept.apps.serve.running import listen, run
from transept.apps.serve.settings import ServerSettings
settings = ServerSettings(port={port}, queue_limit=QUEUE, sentence_limit=QUEUE)
with listen(settings.host, settings.port) as listening:
    app = create_app(settings, [Served("en", "de", model())])
    run(app, listening, settings, lambda address: None, threading.Event())
"""


class Brief(Transducer):
    """Limits outputs to the input length, because random weights rarely end an output."""

    def translate(self, texts: Any, **options: Any) -> Any:
        return super().translate(texts, max_length_extra=0, **options)

    def translate_units(self, units: Any, **options: Any) -> Any:
        return super().translate_units(units, max_length_extra=0, **options)

    def translate_feed(self, feed: Any, **options: Any) -> Any:
        return super().translate_feed(feed, max_length_extra=0, **options)


def model() -> Transducer:
    """A Transformer with random weights."""
    torch.set_num_threads(1)
    tokenizer = train_tokenizer([" ".join(lexicon())] * 20, vocab_size=VOCABULARY)
    torch.manual_seed(1)
    config = ModelConfig(vocab_size=VOCABULARY, n_layers=3, d_model=256, d_ff=1024, n_heads=4)
    return Brief([Transformer(config)], tokenizer, tokenizer)


@cache
def lexicon() -> tuple[str, ...]:
    """Invented words."""
    chance = random.Random(1)
    lengths = (chance.randint(3, 8) for _ in range(VOCABULARY))
    return tuple("".join(chance.choices("etaoinshrdlu", k=length)) for length in lengths)


def sentences(seed: int) -> Iterator[str]:
    chance = random.Random(seed)
    while True:
        yield " ".join(chance.choices(lexicon(), k=chance.randint(4, 14)))


@dataclass
class Load:
    """The answers that clients received."""

    latencies: list[float] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    took: float = 0.0

    @property
    def faults(self) -> int:
        return sum(n for status, n in self.statuses.items() if status not in (200, 429))


async def load(url: str, seconds: float, *, clients: int = CLIENTS, at_once: int = 1) -> Load:
    """Clients that each send `at_once` sentences, wait for the answer, and send again."""
    seen = Load()
    start = time.perf_counter()

    async def client(number: int, http: httpx.AsyncClient) -> None:
        texts = sentences(number)
        while time.perf_counter() - start < seconds:
            sent = [next(texts) for _ in range(at_once)]
            begun = time.perf_counter()
            body = {"q": sent, "source": "en", "target": "de"}
            answer = await http.post("/translate", json=body)
            seen.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                seen.latencies.append(time.perf_counter() - begun)
                seen.answered += sent
            elif answer.status_code == 429:
                await asyncio.sleep(0.2)  # far less than Retry-After

    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=90, limits=limits) as http:
        working = [asyncio.create_task(client(number, http)) for number in range(clients)]
        if at_once > 1:  # overloading clients do not wait for the last answers
            await asyncio.wait(working, timeout=seconds)
            for one in working:
                one.cancel()
        await asyncio.gather(*working, return_exceptions=at_once > 1)
    seen.took = time.perf_counter() - start
    return seen


def recovery(url: str, usual: float) -> float:
    """Seconds until the latency is as low as under normal load."""
    start = time.perf_counter()
    with httpx.Client(base_url=url, timeout=90) as http:
        for text in sentences(0):
            begun = time.perf_counter()
            answer = http.post("/translate", json={"q": text, "source": "en", "target": "de"})
            if answer.status_code == 200 and time.perf_counter() - begun <= usual:
                return begun - start
            time.sleep(0.05)
    raise AssertionError


@dataclass(frozen=True)
class Held:
    """Resources held by a server process."""

    threads: int
    files: int
    megabytes: float
    waiting: float
    streams: float

    @classmethod
    def by(cls, process: "subprocess.Popen[bytes]", url: str) -> "Held":
        status = Path(f"/proc/{process.pid}/status").read_text()
        figures = httpx.get(f"{url}/metrics").text
        return cls(
            int(_after(status, "Threads:")),
            len(list(Path(f"/proc/{process.pid}/fd").iterdir())),
            int(_after(status, "VmRSS:")) / 1024,
            float(_after(figures, "\ntransept_queue_sentences ")),
            float(_after(figures, "\ntransept_streams ")),
        )


def _after(text: str, name: str) -> str:
    return text.partition(name)[2].split()[0]


def leave(url: str, times: int) -> None:
    """Send requests, alternating both kinds, and disconnect immediately."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    texts = sentences(99)
    for number in range(times):
        path = "/api/stream" if number % 2 else "/translate"
        body = f'{{"q": "{next(texts)}", "source": "en", "target": "de"}}'
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            time.sleep(0.02)


def settled(process: "subprocess.Popen[bytes]", url: str) -> Held:
    """Resources held by an idle server."""
    for _ in range(200):
        held = Held.by(process, url)
        if not held.waiting and not held.streams:
            break
        time.sleep(0.1)
    time.sleep(1)
    return Held.by(process, url)


def serve() -> tuple["subprocess.Popen[bytes]", str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = SERVER.format(here=str(Path(__file__).parent), port=port)
    process = subprocess.Popen([sys.executable, "-c", code])
    url = f"http://127.0.0.1:{port}"
    while True:
        try:
            httpx.get(f"{url}/health").raise_for_status()
            return process, url
        except httpx.TransportError:
            time.sleep(0.2)


def cpu_seconds(process: "subprocess.Popen[Any]") -> float:
    """CPU time of a process so far, all threads included."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def offline(process: "subprocess.Popen[bytes]", answered: list[str]) -> tuple[float, float]:
    """Sentences per second and per CPU-second in this process, while the server is paused."""
    transducer = model()
    process.send_signal(signal.SIGSTOP)
    try:
        transducer.translate(answered[:64])
        start, cpu_start = time.perf_counter(), time.process_time()
        transducer.translate(answered, source_language="en")
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        return len(answered) / seconds, len(answered) / cpu
    finally:
        process.send_signal(signal.SIGCONT)


@dataclass(frozen=True)
class Plan:
    """Durations and number of disconnecting clients."""

    seconds: float = 60.0
    overloaded_seconds: float = 20.0
    leaving: int = 1_000


QUICK = Plan(seconds=4.0, overloaded_seconds=4.0, leaving=100)


def measure(
    plan: Plan, process: "subprocess.Popen[bytes]", url: str
) -> tuple[list[Row], list[Goal]]:
    rows: list[Row] = []

    def note(work: str, system: str, value: float, unit: str) -> float:
        rows.append(Row.once(work, system, value, unit))
        return value

    asyncio.run(load(url, 1.0))  # the first batches are slower
    cpu_before = cpu_seconds(process)
    usual = asyncio.run(load(url, plan.seconds))
    cpu = cpu_seconds(process) - cpu_before
    rate, cpu_rate = offline(process, usual.answered)
    work, same = f"{CLIENTS} clients, {plan.seconds:g} s", "the same sentences"
    percent = statistics.quantiles(usual.latencies, n=100)
    for name, at in (("p50", 49), ("p95", 94), ("p99", 98)):
        note(work, name, 1000 * percent[at], "ms")
    online = note(work, "server", len(usual.answered) / usual.took, "sentences/s")
    note(same, "offline", rate, "sentences/s")
    cpu_online = note(work, "server", len(usual.answered) / cpu, "sentences/CPU-s")
    note(same, "offline", cpu_rate, "sentences/CPU-s")

    much = asyncio.run(load(url, plan.overloaded_seconds, clients=10 * CLIENTS, at_once=10))
    recovered = recovery(url, percent[49])
    flood = f"{10 * CLIENTS} clients, 10 at once"
    note(flood, "answered", much.statuses[200], "requests")
    note(flood, "rejected (429)", much.statuses[429], "requests")

    leave(url, 100)
    before = settled(process, url)
    leave(url, plan.leaving)
    after = settled(process, url)
    for when, held in (("before", before), ("after", after)):
        note(f"{plan.leaving} clients that disconnect", f"memory {when}", held.megabytes, "MB")
    risen = after.megabytes - before.megabytes
    left = after.threads - before.threads + after.files - before.files
    left += int(after.waiting + after.streams)
    faults = usual.faults + much.faults
    return rows, [
        Goal.at_least("throughput against offline decoding", online / rate, 0.7),
        Goal.at_least("the same by CPU time", cpu_online / cpu_rate, 0.7),
        Goal("answers that are neither 200 nor 429", faults, 0, faults == 0),
        Goal("seconds from overload to the usual p50", recovered, 5, recovered <= 5),
        Goal("threads, files, sentences, streams left behind", left, 0, left <= 0),
        Goal("memory growth, MB", risen, 10, risen <= 10),
    ]


def main() -> None:
    arguments = parser_of(__doc__, quick="seconds instead of minutes").parse_args()
    process, url = serve()
    try:
        rows, goals = measure(QUICK if arguments.quick else Plan(), process, url)
    finally:
        process.terminate()
        exit_code = process.wait(60)
    goals.append(Goal("exit code after SIGTERM", exit_code, 0, exit_code == 0))
    report("server", rows, goals, ["torch", "starlette", "uvicorn"], arguments.json)


if __name__ == "__main__":
    main()
