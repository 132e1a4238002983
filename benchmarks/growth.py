"""Cost growth: time and memory by the number of sentences, their length, and the training pairs.

    python benchmarks/growth.py [--device cuda] [--quick] [--json FILE]

- *translate*: `Transducer.translate` with the bundled model en-de and beam 4, from 1 to 4,096
  generated sentences of 4 to 25 tokens.
- *decode*: the same engine on 8 sentences of 10 to 500 random tokens. Outputs have the same length,
  because the end symbol has a logit of 0 and is never chosen.
- *train on*: one epoch of 1,000 to 10 million pairs with random ids and lengths as in Europarl. The
  corpus is opened and shuffled, and every batch is planned and read.

Each point is a new process, whose peak memory is measured. A CPU uses one thread, and times are CPU
times of the process, so that other processes matter less. A GPU runs the engine `fused`. There,
times are wall times, memory is that of torch's allocator, and training pairs are not measured,
because they are planned and read by the CPU.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data_prepare import MIB, Memory
from measuring import Goal, Row, parser_of, report
from numpy.typing import NDArray
from workload import sources

import transept
from transept.api.config import EngineName
from transept.apps.recipes.sentences import built_in
from transept.data.batching.feed import collate
from transept.data.batching.mixture import Mixture
from transept.data.batching.plan import START, Plan
from transept.data.cleaning import Cleaning
from transept.data.config import BatchConfig
from transept.data.shards import (
    FORMAT,
    IDS,
    OFFSET_TYPE,
    OFFSETS,
    Corpus,
    Manifest,
    Settings,
    SideSummary,
    corpus_hash,
    id_type,
    width_for,
)
from transept.decoding.config import SearchConfig
from transept.decoding.engine import Input
from transept.engines.choice import choose
from transept.progress import no_progress
from transept.runtime.storage import Stored
from transept.text.tokenizer import EOS_ID

SENTENCES = [4**power for power in range(7)]
LENGTHS = [10, 20, 50, 100, 200, 500]
PAIRS = [10**power for power in range(3, 8)]
AT_ONCE = 8
"""Sentences of each length."""
ENOUGH, ROUNDS = 4.0, 9
"""A point is measured until its rounds have taken this many seconds, or for this many rounds."""
MODEL, VOCABULARY = "en-de", 37_000
ENGINES: dict[str, EngineName] = {"cpu": "native", "cuda": "fused"}
PER_TOKEN = {"cpu": "CPU-µs/output token", "cuda": "µs/output token"}
PEAK, STARTED, PLANNED, READ = (
    "MiB peak", "CPU-s until the first batch", "CPU-µs/pair planned", "CPU-µs/pair read"
)  # fmt: skip
SLOWER, LARGER = 1.15, 1.25
"""Goals: the factors by which time per token or pair, and memory, may grow where they should be
constant."""

Point = dict[str, Any]


# --- one point, in its own process -----------------------------------------------------------


def translate(n: int, device: str) -> Point:
    """Translate n sentences as a user does."""
    model = transept.load(MODEL, device=device, engine=ENGINES[device])
    sentences = [source for source, _ in built_in()["train"]]
    random.Random(0).shuffle(sentences)
    times, found = timed(lambda: model.translate(sentences[:n]), device)
    tokens = sum(len(model.target_tokenizer.encode(each.text)) + 1 for each in found)
    return {"tokens": tokens, "times": times}


def decode(length: int, device: str) -> Point:
    """Decode sentences of this length."""
    loaded = transept.load(MODEL, device=device, engine="native")
    model, tokenizers = loaded.model, (loaded.source_tokenizer, loaded.target_tokenizer)
    model.projection.weight.data[EOS_ID] = 0
    engine = choose(ENGINES[device], [model], tokenizers, ["fp32"])
    torch.manual_seed(0)
    inputs = [Input(ids, length) for ids in sources(AT_ONCE, model.config.vocab_size, length)]
    times, found = timed(lambda: engine.search(inputs, SearchConfig(), no_progress), device)
    assert all(len(best.ids) == length for best, *_ in found), "the end symbol was chosen"
    return {"tokens": AT_ONCE * length, "times": times}


def timed(work: Callable[[], Any], device: str) -> tuple[list[float], Any]:
    """Seconds of each round, and the result. The first of several rounds warms up."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    if device == "cuda":
        work()  # compiles kernels
    times: list[float] = []
    while len(times) <= ROUNDS and sum(times) < ENOUGH:
        start = clock()
        found = work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(clock() - start)
    return times[1:] or times, found


def train_on(directory: Path) -> Point:
    """Plan and read an epoch of a corpus."""
    begin = time.process_time()
    mixture = Mixture([Corpus.open(directory)])
    plan = Plan(mixture, BatchConfig(), seed=0)
    batch, *_ = plan.window(0, 0)
    collate(START, batch, batch.micro, mixture)
    seconds = {"started": time.process_time() - begin, "planned": 0.0, "read": 0.0}
    tokens = positions = 0
    for window in range(plan.n_windows):
        begin = time.process_time()
        batches = plan.window(0, window)
        planned = time.process_time()
        for batch in batches:
            header, _ = collate(START, batch, batch.micro, mixture)
            tokens += header.n_source_tokens + header.n_target_tokens
            positions += header.n_positions
        seconds["planned"] += planned - begin
        seconds["read"] += time.process_time() - planned
    return {"pairs": plan.n_pairs, "seconds": seconds, "fill": tokens / positions}


def print_point(work: str, size: str, device: str) -> None:
    """Measure a point and print it as JSON."""
    if work == "train_on":
        point = train_on(Path(size))
    else:
        point = {"translate": translate, "decode": decode}[work](int(size), device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if device == "cuda":
        peak = torch.cuda.max_memory_allocated()
    print(json.dumps({"peak": peak, **point}))


# --- the whole measurement -------------------------------------------------------------------


def measured(work: str, size: object, device: str = "cpu") -> Point:
    """A point, measured in a new process with one thread, and its peak memory without files."""
    command = [sys.executable, __file__, "--device", device, "--point", work, str(size)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MIMALLOC_PURGE_DELAY": "2000"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        with Memory(process.pid, files=False) as memory:
            output, _ = process.communicate()
        if process.returncode:
            sys.exit(f"{' '.join(command)} failed")
    return {"without files": memory.peak_bytes, **json.loads(output.splitlines()[-1])}


def decoding(work: str, named: str, sizes: Sequence[int], device: str) -> Iterator[Row]:
    """Time per token and memory for each size."""
    for size in sizes:
        point = measured(work, size, device)
        name = named.format(size)
        times = [1e6 * each / point["tokens"] for each in point["times"]]
        # Quartiles need two values.
        yield Row.of(name, MODEL, times * (1 + (len(times) == 1)), PER_TOKEN[device])
        yield Row.once(name, MODEL, point["peak"] / MIB, PEAK)


def training_pairs(sizes: Sequence[int]) -> Iterator[Row]:
    """Time per pair and memory for each size."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as directory:
            write_corpus(size, Path(directory))
            point = measured("train_on", directory)
        name, seconds = f"train on {size:,} pairs", point["seconds"]
        per_pair = 1e6 / point["pairs"]
        yield Row.once(name, "packed", seconds["started"], STARTED)
        yield Row.once(name, "packed", per_pair * seconds["planned"], PLANNED)
        yield Row.once(name, "packed", per_pair * seconds["read"], READ)
        yield Row.once(name, "packed", point["without files"] / MIB, PEAK)
        yield Row.once(name, "packed", 100 * point["fill"], "% of positions filled")


def write_corpus(n_pairs: int, directory: Path) -> None:
    """A corpus of random ids. Its lengths are like Europarl's: about 30, with a long tail."""
    chance = np.random.default_rng(0)
    source = chance.lognormal(np.log(26), 0.58, n_pairs)
    target = source * chance.lognormal(0, 0.16, n_pairs)
    width = width_for(VOCABULARY)
    sides = {}
    for side, lengths in (("source", source), ("target", target)):
        offsets = np.zeros(n_pairs + 1, OFFSET_TYPE)
        np.cumsum(np.clip(np.rint(lengths), 2, 500), out=offsets[1:], dtype=OFFSET_TYPE)
        offsets.tofile(directory / OFFSETS[side])
        tokens = int(offsets[-1])
        write_ids(chance, tokens, directory / IDS[side], id_type(width))
        sides[side] = SideSummary(tokens=tokens, unknown=0, vocab_size=VOCABULARY, dtype=width)
    files = {path.name: Stored.of(path) for path in sorted(directory.iterdir())}
    settings = Settings(inputs=(), source_tokenizer="", target_tokenizer="", cleaning=Cleaning())
    manifest = Manifest(
        format=FORMAT, hash=corpus_hash(files), read=n_pairs, pairs=n_pairs, dropped={},
        settings=settings, files=files, source=sides["source"], target=sides["target"],
    )  # fmt: skip
    manifest.save(directory)


def write_ids(chance: np.random.Generator, n: int, path: Path, kind: np.dtype[Any]) -> None:
    with path.open("wb") as file:
        for first in range(0, n, MIB):
            ids: NDArray[Any] = chance.integers(4, VOCABULARY, min(MIB, n - first), dtype=kind)
            ids.tofile(file)


def goals(rows: Sequence[Row]) -> list[Goal]:
    """From a large size to the largest, nothing that should be constant may grow."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row.work.split()[0], row.unit), []).append(row.value)
    targets = {
        **{("translate", unit): SLOWER for unit in PER_TOKEN.values()},
        ("translate", PEAK): LARGER,
        ("train", PLANNED): SLOWER,
        ("train", READ): SLOWER,
    }
    return [
        Goal(f"{work}, {unit}: the largest / the one before", values[-1] / values[-2], target,
             values[-1] / values[-2] <= target)
        for (work, unit), values in found.items()
        if (target := targets.get((work, unit)))
    ]  # fmt: skip


def main() -> None:
    parser = parser_of(__doc__, quick="small sizes only, under a minute")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--point", nargs=2, metavar=("WORK", "SIZE"), help="measure one point only")
    arguments = parser.parse_args()
    device = arguments.device
    if arguments.point:
        work, size = arguments.point
        print_point(work, size, device)
        return
    few = 3 if arguments.quick else None
    rows = [
        *decoding("translate", "translate {:,} sentences", SENTENCES[:few], device),
        *decoding("decode", f"decode {AT_ONCE} sentences of {{}} tokens", LENGTHS[:few], device),
    ]
    if device == "cpu":
        rows += training_pairs(PAIRS[:few])
    name = torch.cuda.get_device_name() if device == "cuda" else None
    report(f"growth_{device}", rows, goals(rows), ["torch", "numpy"], arguments.json, name)


if __name__ == "__main__":
    main()
