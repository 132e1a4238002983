"""Corpus preparation: pairs per second compared with sentencepiece, and memory as corpora grow.

sentencepiece encodes both sides in one thread, in memory. `transept data prepare` is the whole
command, from the start of Python to the last rename: it reads, cleans, tokenizes, drops duplicates,
writes and hashes, on all cores. The two run interleaved. Pairs per CPU-second are comparable even
if the machine is busy.

    python benchmarks/data_prepare.py [--quick] [--json FILE] [--source FILE --target FILE]

Without files, sentences are synthetic: words follow Zipf's law, lengths are as in real text.
"""

import argparse
import itertools
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measuring import Goal, Row, parser_of, report
from sentencepiece import SentencePieceProcessor

from transept.data.preparation.duplicates import SeenPairs
from transept.runtime.workers import available_cores
from transept.text.files import read_text
from transept.text.training import train_tokenizer

SAMPLE_SECONDS = 0.1
MIB = 1 << 20
PAGE = 4096


@dataclass(frozen=True)
class Run:
    """One run of the command."""

    pairs_per_second: float
    pairs_per_cpu_second: float
    peak_bytes: int = 0


@dataclass(frozen=True)
class Texts:
    """A parallel corpus as two plain files."""

    source: Path
    target: Path
    n_pairs: int

    def head(self, n_pairs: int, directory: Path) -> "Texts":
        """Its first pairs as a separate corpus."""
        paths = []
        for path in (self.source, self.target):
            paths.append(directory / f"{n_pairs}-{path.name}")
            with path.open("rb") as whole, paths[-1].open("wb") as part:
                part.writelines(itertools.islice(whole, n_pairs))
        return Texts(paths[0], paths[1], n_pairs)

    def every(self, stride: int) -> tuple[list[str], list[str]]:
        """Every n-th pair."""
        source, target = (
            list(itertools.islice(read_text(path), 0, None, stride))
            for path in (self.source, self.target)
        )
        return source, target


def collect(options: argparse.Namespace, directory: Path) -> Texts:
    """Plain files of at most the requested number of pairs: the user's, or synthetic ones."""
    paths = (directory / "text.source", directory / "text.target")
    if options.source and options.target:
        given = (read_text(options.source), read_text(options.target))
    else:
        given = (made_up(options.pairs, seed=1), made_up(options.pairs, seed=2))
    counts = [
        _write(path, itertools.islice(lines, options.pairs))
        for path, lines in zip(paths, given, strict=True)
    ]
    return Texts(*paths, min(counts))


def made_up(count: int, seed: int) -> Iterator[str]:
    """Sentences of invented words."""
    chance = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkäöü"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 11))) for _ in range(30_000)]
    cumulative = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    lengths = random.Random(0)  # the same for both sides, as in translations
    for number in range(count):
        k = min(120, max(2, round(lengths.lognormvariate(3.0, 0.6))))
        yield " ".join(chance.choices(words, cum_weights=cumulative, k=k)) + f" {number}."


def _write(path: Path, lines: Iterator[str]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(f"{line}\n")
            count += 1
    return count


def encode_alone(processor: SentencePieceProcessor, texts: Sequence[list[str]]) -> Run:
    """The baseline: sentencepiece in one thread."""
    n_pairs = len(texts[0])
    begin, begin_cpu = time.perf_counter(), time.process_time()
    for sentences in texts:
        processor.encode(sentences, num_threads=1)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    return Run(n_pairs / seconds, n_pairs / cpu)


def prepare(texts: Texts, tokenizer: Path, directory: Path, *options: str) -> Run:
    """Run the command and measure the memory of all its processes."""
    with tempfile.TemporaryDirectory(dir=directory) as output:
        files = {
            "--source": texts.source,
            "--target": texts.target,
            "--tokenizer": tokenizer,
            "--output": Path(output) / "corpus",
        }
        words = [sys.executable, "-m", "transept", "data", "prepare"]
        words += [str(word) for pair in files.items() for word in pair]
        begin, begin_cpu = time.perf_counter(), _cpu_of_children()
        process = subprocess.Popen(
            [*words, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with Memory(process.pid) as memory:
            code = process.wait()
        seconds, cpu = time.perf_counter() - begin, _cpu_of_children() - begin_cpu
    if code:
        raise SystemExit(f"`{' '.join(words)}` failed with exit code {code}")
    return Run(texts.n_pairs / seconds, texts.n_pairs / cpu, memory.peak_bytes)


def _cpu_of_children() -> float:
    """CPU-seconds of all finished child processes, including workers of the command."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Memory:
    """Peak resident memory of a process and its descendants, with mapped files or without."""

    def __init__(self, pid: int, *, files: bool = True) -> None:
        self.peak_bytes = 0
        self._root = pid
        self._files = files
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_SECONDS):
            found = sum(_resident(pid, self._files) for pid in _tree(self._root))
            self.peak_bytes = max(self.peak_bytes, found)


def _tree(root: int) -> set[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found = {root}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return found


def _resident(pid: int, files: bool) -> int:
    """Resident memory. Shared pages count for each process, so totals are upper bounds."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
    except OSError:
        return 0
    return PAGE * (resident if files else resident - shared)


def measure(options: argparse.Namespace, directory: Path) -> tuple[list[Row], list[Goal]]:
    cores = available_cores()
    texts = collect(options, directory)
    tokenizer = directory / "tokenizer"
    sample = texts.every(max(1, texts.n_pairs // options.sample))
    train_tokenizer(itertools.chain(*sample), vocab_size=options.vocab_size).save(tokenizer)
    processor = SentencePieceProcessor(model_file=str(tokenizer / "tokenizer.model"))

    systems: dict[str, list[Run]] = {
        "sentencepiece, one thread": [],
        f"transept data prepare, {cores} cores": [],
    }
    alone, whole = systems.values()
    for _ in range(options.repeats):
        alone.append(encode_alone(processor, sample))
        whole.append(prepare(texts, tokenizer, directory))
    rows = []
    for unit, field in (("pairs/s", "pairs_per_second"), ("pairs/CPU-s", "pairs_per_cpu_second")):
        for system, runs in systems.items():
            values = [getattr(run, field) for run in runs]
            rows.append(Row.of(f"{texts.n_pairs:,} pairs", system, values, unit))
    share = rows[1].value / (rows[0].value * cores)
    memory_rows, memory_goals = measure_memory(texts, tokenizer, directory)
    goals = [Goal.at_least("speed, in sentencepiece's times the cores", share, 0.8)]
    return rows + memory_rows, goals + memory_goals


def measure_memory(texts: Texts, tokenizer: Path, directory: Path) -> tuple[list[Row], list[Goal]]:
    """Peak memory for a quarter, a half and all of the corpus, with duplicates kept and dropped."""
    rows = []
    kept, dropped = [], []
    for part in (4, 2, 1):
        head = texts.head(texts.n_pairs // part, directory)
        kept.append(prepare(head, tokenizer, directory, "--no-drop-duplicates").peak_bytes)
        dropped.append(prepare(head, tokenizer, directory).peak_bytes)
        for name, peaks in (("kept", kept), ("dropped", dropped)):
            peak = peaks[-1] / MIB
            system = f"transept, duplicates {name}"
            rows.append(Row(f"{head.n_pairs:,} pairs", system, peak, "MiB peak", peak, peak))
    growth = kept[-1] / kept[-2]
    on_top = peak_bytes_per_pair(texts.n_pairs, directory / "seen")
    rows.append(
        Row(f"{texts.n_pairs:,} hashes", "seen pairs", on_top, "bytes each", on_top, on_top)
    )
    most = dropped[-1] / MIB
    goals = [
        Goal("memory when the corpus doubles, times", growth, 1.05, growth <= 1.05),
        Goal("duplicate removal, bytes per pair", on_top, 16.0, on_top <= 16.0),
        Goal.below("peak memory, MiB", most, 1000.0),
    ]
    return rows, goals


def peak_bytes_per_pair(count: int, path: Path) -> float:
    """The peak memory per pair of the set of seen pairs while it grows to `count`."""
    chance = np.random.default_rng(0)
    seen = SeenPairs(path)
    most = 0.0
    while len(seen) < count:
        seen.add(chance.integers(0, 2**64, 2048, dtype=np.uint64))
        if len(seen) > count // 8:  # the size is a small constant before
            most = max(most, seen.nbytes / len(seen))
    seen.close()
    return most


def main() -> None:
    parser = parser_of(__doc__, quick="60,000 pairs: under a minute")
    parser.add_argument("--source", type=Path, help="text, one sentence per line")
    parser.add_argument("--target", type=Path, help="its translation")
    parser.add_argument("--pairs", type=int, default=500_000, help="maximum number of pairs")
    parser.add_argument("--sample", type=int, default=60_000, help="pairs for sentencepiece alone")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--vocab-size", type=int, default=37_000)
    options = parser.parse_args()
    if options.quick:
        options.pairs = min(options.pairs, 60_000)
        options.sample, options.repeats, options.vocab_size = 10_000, 2, 4_000
    with tempfile.TemporaryDirectory() as directory:
        rows, goals = measure(options, Path(directory))
    report("data_prepare", rows, goals, ("sentencepiece", "numpy"), options.json)


if __name__ == "__main__":
    main()
