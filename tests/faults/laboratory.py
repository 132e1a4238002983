"""A run that is small enough to be broken hundreds of times, and the forks that break it.

Importing torch takes seconds, and a fork takes milliseconds: one process imports everything, trains
the undisturbed run, and each fault then happens to a fork of it, in a directory of its own.
"""

import dataclasses
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.children import BrokenError, Child, Ended, Watching, demand, transept

LAST_STEP, SAVE_EVERY, BEGUN, KEPT = 12, 3, 9, 3
RUN = "run"
"""The directory of a case's run, relative to the case's own."""

WORDS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
    "de": ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"],
}

CONFIG = f"""
[model]
vocab_size = 300
n_layers = 1
d_model = 16
d_ff = 32
n_heads = 2
dropout = 0.1

[data]
train = [{{{{path = "{{train}}"}}}}]
dev = "{{dev}}"
workers = 0

[batch]
source_tokens = 256
target_tokens = 256
tile = 64
max_length = 64

[schedule]
warmup_steps = 20

[training]
max_steps = {LAST_STEP}
log_every = 1
device = "cpu"
clip_norm = 0.5
ema_decay = 0.9

[validation]
every_steps = 6

[checkpoint]
every_steps = {SAVE_EVERY}
keep = {KEPT}
"""


@dataclass(frozen=True)
class Laboratory:
    """Corpora, a vocabulary, a config, the undisturbed run, and a run that has got half way."""

    directory: Path
    jobs: int
    seconds: float = 0.0
    """How long the undisturbed run takes in a fork."""

    @classmethod
    def open(cls, directory: Path, jobs: int) -> "Laboratory":
        """Make it all, which also imports all that a training ever imports."""
        lab = cls(directory, jobs)
        for stem, n in (("train", 400), ("dev", 40)):
            _write_pairs(directory / stem, n)
        made = lab.quietly("tokenizer", "train", "--input", directory / "train.en",
                           directory / "train.de", "--vocab-size", 300,
                           "--output", lab.tokenizer)  # fmt: skip
        made.demand(0)
        for stem in ("train", "dev"):
            lab.quietly(*lab.prepare_words(stem), "--output", lab.ids(stem)).demand(0)
        lab.config.write_text(CONFIG.format(train=lab.ids("train"), dev=lab.ids("dev")), "utf-8")
        _measure_peak_once()
        straight = directory / "straight"
        straight.mkdir()
        with _in_directory(straight):
            assert transept(*lab.train_words) == 0, "the undisturbed run failed"
        half = directory / "half"
        half.mkdir()
        child = Child(lambda: lab.train_watched(_leave_after(BEGUN)), half)
        child.wait().demand(0)
        return dataclasses.replace(lab, seconds=lab._timed())

    @property
    def config(self) -> Path:
        return self.directory / "small.toml"

    @property
    def tokenizer(self) -> Path:
        return self.directory / "vocabulary"

    @property
    def straight(self) -> Path:
        """The undisturbed run."""
        return self.directory / "straight" / RUN

    @property
    def half(self) -> Path:
        """A run that was left after step `BEGUN`, its checkpoint written."""
        return self.directory / "half" / RUN

    @property
    def train_words(self) -> tuple[object, ...]:
        return ("train", self.config, "--output", RUN)

    def ids(self, stem: str) -> Path:
        """A prepared corpus."""
        return self.directory / f"{stem}-ids"

    def prepare_words(self, stem: str) -> tuple[object, ...]:
        source, target = self.directory / f"{stem}.en", self.directory / f"{stem}.de"
        return ("data", "prepare", "--source", source, "--target", target,
                "--tokenizer", self.tokenizer, "--workers", 0)  # fmt: skip

    def quietly(self, *words: object) -> Ended:
        """A command in a child, here."""
        return Child(lambda: transept(*words), self.directory).wait()

    def train_watched(self, note: Callable[[dict[str, Any]], object], *overrides: str) -> int:
        """Train in this process, and be told of each line of the log after it is written."""
        from transept import config
        from transept.assembly import train
        from transept.experiment import Experiment

        outcome = train(
            config.load(Experiment, self.config, overrides), Path(RUN), observers=[Watching(note)]
        )
        return 75 if outcome == "stopped" else 0

    def _timed(self) -> float:
        begin = time.monotonic()
        with self.case("timing") as directory:
            Child(lambda: transept(*self.train_words), directory).wait().demand(0)
        return time.monotonic() - begin

    @contextmanager
    def case(self, name: str) -> Iterator[Path]:
        """A directory that is removed in the end."""
        directory = self.directory / "cases" / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Bench:
    """What one case works with: its number, its own chance, and its own directory."""

    lab: Laboratory
    case: int
    chance: random.Random
    directory: Path

    def child(self, work: Callable[[], int | None]) -> Child:
        return Child(work, self.directory)

    def train(self, *words: object) -> Ended:
        """`transept train`, from wherever the case's run stands, to its end."""
        return self.child(lambda: transept(*self.lab.train_words, *words)).wait()

    def begin_half(self) -> None:
        """Let the case's run be one that has got half way."""
        shutil.copytree(self.lab.half, self.directory / RUN)

    def demand_recovery(self) -> None:
        """The run goes on to its end, and ends as if nothing had happened."""
        self.train().demand(0)
        self.demand_same_run()

    def demand_same_run(self, other: Path | None = None) -> None:
        """Weights, moments, position and log are those of the undisturbed run, bit for bit."""
        run, straight = self.directory / RUN, other or self.lab.straight
        demand_same_tensors(run, straight)
        demand(_logged(run) == _logged(straight), "the log tells another story")

    def demand_same_corpus(self, corpus: Path) -> None:
        """All that a training reads of it is as it should be."""
        _demand_same_corpus(corpus, self.lab.ids("train"))


def _demand_same_corpus(corpus: Path, expected: Path) -> None:
    from transept.data.shards import Corpus

    ours, theirs = Corpus.open(corpus, verify=True), Corpus.open(expected)
    demand(ours.hash == theirs.hash, f"another hash: {ours.hash}")
    files = [sorted(str(path.relative_to(each)) for path in each.rglob("*") if path.is_file())
             for each in (corpus, expected)]  # fmt: skip
    demand(files[0] == files[1], f"other files: {files[0]} instead of {files[1]}")
    for name in files[0]:
        same = (corpus / name).read_bytes() == (expected / name).read_bytes()
        demand(same, f"{name} has other contents")


def demand_same_tensors(run: Path, straight: Path) -> None:
    """The run's last checkpoint is that of another run, and nothing else is left lying about."""
    import torch

    from transept.checkpoint import CHECKPOINTS, Checkpoints

    ours, theirs = (Checkpoints(each / CHECKPOINTS).newest() for each in (run, straight))
    assert theirs is not None
    if ours is None:
        raise BrokenError("no whole checkpoint is left")
    states = [dict(bundle.state()) for bundle in (ours, theirs)]
    for state in states:
        del state["seconds"], state["regular_seconds"]
    demand(states[0] == states[1], f"another state: {states[0]} instead of {states[1]}")
    for kind in ("weights", "training"):
        tensors, expected = getattr(ours, kind)(), getattr(theirs, kind)()
        demand(tensors.keys() == expected.keys(), f"other {kind}")
        for name, tensor in expected.items():
            demand(torch.equal(tensor, tensors[name]), f"{kind}: {name} has other bits")
    names = [path.name for each in (run, run / CHECKPOINTS) for path in each.iterdir()]
    stray = [name for name in names if name.startswith(".")]
    demand(not stray, f"left lying about: {stray}")
    kept = [name for name in names if name.startswith("step-")]
    demand(len(kept) <= KEPT + 1, f"more checkpoints than there should be: {kept}")


def _logged(run: Path) -> list[dict[str, Any]]:
    """What of a run's log must not depend on the clock."""
    from transept.training.observers import read_metrics

    lasting = ("kind", "step", "epoch", "loss", "nll", "lr", "gradient_norm", "perplexity",
               "suppressed")  # fmt: skip
    return [
        {key: value for key, value in line.items() if key in lasting}
        for line in read_metrics(run / "metrics.jsonl")
        if line["kind"] in ("step", "validation")
    ]


def _measure_peak_once() -> None:
    """What MFU is held against: it takes a quarter of so small a run, and changes nothing in it."""
    from transept.runtime.device import Runtime

    Runtime.choose("cpu", "fp32").matrix_peak()


def _leave_after(step: int) -> Callable[[dict[str, Any]], None]:
    def note(line: dict[str, Any]) -> None:
        if line["kind"] == "step" and line["step"] > step:
            os._exit(0)

    return note


def _write_pairs(stem: Path, n: int) -> None:
    chance = random.Random(n)
    pairs = [[chance.randrange(10) for _ in range(chance.randint(2, 7))] for _ in range(n)]
    for suffix, words in WORDS.items():
        turn = 1 if suffix == "en" else -1
        lines = "".join(" ".join(words[i] for i in pair[::turn]) + "\n" for pair in pairs)
        stem.with_suffix(f".{suffix}").write_text(lines, encoding="utf-8")


@contextmanager
def _in_directory(directory: Path) -> Iterator[None]:
    before, out, error = Path.cwd(), sys.stdout, sys.stderr
    os.chdir(directory)
    try:
        with Path(os.devnull).open("w") as nowhere:
            sys.stdout = sys.stderr = nowhere
            yield
    finally:
        sys.stdout, sys.stderr = out, error
        os.chdir(before)
