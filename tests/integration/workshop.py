"""A small generated corpus, prepared once: number words, and the same reversed."""

import io
import random
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from transept.cli.app import main

ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
VOCABULARY = 300

CONFIG = """
[model]
vocab_size = 300
n_layers = 1
d_model = 16
d_ff = 32
n_heads = 2
dropout = 0.1

[data]
train = [{{path = "{train}"}}]
dev = "{dev}"
workers = 0

[batch]
source_tokens = 256
target_tokens = 256
tile = 64
max_length = 64

[schedule]
warmup_steps = 20

[training]
max_steps = 30
log_every = 1

[validation]
every_steps = 10

[checkpoint]
every_steps = 5
"""

IMPATIENT = """
import os, signal, sys
from transept.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # what begins in the background ignores it
class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
module = sys.argv.pop(1)
sys.meta_path.insert(0, Impatient())
main()
"""
"""A command that gets Ctrl-C while it imports a module."""


@dataclass(frozen=True)
class Workshop:
    """Prepared corpora, a tokenizer, and a config for a short training run."""

    directory: Path
    config: Path

    @property
    def tokenizer(self) -> Path:
        return self.directory / "vocabulary"


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as end:
        main([str(word) for word in words])
    assert isinstance(end.value.code, int)
    return end.value.code


def ran(*words: object, encoding: str = "utf-8") -> subprocess.CompletedProcess[str]:
    """Run a command in this process, which has already imported torch."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding) for _ in range(2)]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = run(*words)
    for stream in streams:
        stream.seek(0)
    printed = (stream.read() for stream in streams)
    return subprocess.CompletedProcess([*map(str, words)], code, *printed)


def write_pairs(stem: Path, n: int, seed: int) -> tuple[Path, Path]:
    chance = random.Random(seed)
    pairs = [[chance.randrange(10) for _ in range(chance.randint(2, 7))] for _ in range(n)]
    source, target = stem.with_suffix(".en"), stem.with_suffix(".de")
    source.write_text("".join(" ".join(ENGLISH[i] for i in p) + "\n" for p in pairs))
    target.write_text("".join(" ".join(GERMAN[i] for i in reversed(p)) + "\n" for p in pairs))
    return source, target


def open_workshop(directory: Path) -> Workshop:
    shop = Workshop(directory, directory / "small.toml")
    texts = {name: write_pairs(directory / name, n, n) for name, n in [("train", 800), ("dev", 60)]}
    size = str(VOCABULARY)
    inputs = texts["train"]
    train = ["tokenizer", "train", "--input", *inputs, "--vocab-size", size]
    assert run(*train, "--output", shop.tokenizer) == 0
    for name, (source, target) in texts.items():
        prepare = ["data", "prepare", "--source", source, "--target", target]
        output = directory / f"{name}-ids"
        assert run(*prepare, "--tokenizer", shop.tokenizer, "--output", output) == 0
    shop.config.write_text(
        CONFIG.format(train=directory / "train-ids", dev=directory / "dev-ids"), encoding="utf-8"
    )
    return shop


def prepare_otherwise(directory: Path, *more: str | Path) -> Path:
    """A corpus with another vocabulary of the same size."""
    source, target = write_pairs(directory / "other", 300, 5)
    words, ids = directory / "words", directory / "ids"
    learn = ["tokenizer", "train", "--input", source, "--vocab-size", VOCABULARY]
    assert run(*learn, "--output", words) == 0
    prepare = ["data", "prepare", "--source", source, "--target", target, "--tokenizer", words]
    assert run(*prepare, "--output", ids, *more) == 0
    return ids


def interrupted_import(
    *words: str, module: str = "numpy.linalg"
) -> subprocess.CompletedProcess[str]:
    """The result of a command that gets Ctrl-C while it imports a module. Default: torch."""
    command = [sys.executable, "-c", IMPATIENT, module, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)
