"""A recipe that runs in seconds, on generated text."""

import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tests.integration.workshop import run, write_pairs

from transept.training.observers import read_metrics

STAGES = ["prepare", "train", "average", "decode", "score", "package", "report"]
RECIPE = """
title = "Number words, reversed"
source_language = "en"
target_language = "de"
limits = "It counts to ten."

[[texts]]
name = "numbers"
source = "train.en.xz"
target = "train.de"
licence = "public domain"
attribution = "ourselves"

[[texts]]
name = "more"
source = "more.en"
target = "more.de"
licence = "public domain"
weight = 2.0

[[dev]]
source = "dev.en"
target = "dev.de"

[[tests]]
name = "first"
source = "test.en"
target = "test.de"
perplexity = true

[[tests]]
name = "second"
source = "other.en"
target = "other.de"

[experiment.model]
vocab_size = 300
n_layers = 1
d_model = 32
d_ff = 64
n_heads = 2
dropout = 0.05

[experiment.data]
workers = 0

[experiment.batch]
source_tokens = 256
target_tokens = 256
tile = 64
max_length = 64

[experiment.schedule]
warmup_steps = 40
factor = 0.5

[experiment.training]
max_steps = 60
log_every = 5

[experiment.validation]
every_steps = 10

[experiment.checkpoint]
every_steps = 5

[average]
last = 3
"""


@dataclass(frozen=True)
class Kitchen:
    """Text, and a recipe for it."""

    data: Path
    recipe: Path

    def cook(self, work: Path, *words: object) -> int:
        return run("recipe", "run", self.recipe, "--work", work, *words)

    def stop(self, work: Path, step: int, *words: object) -> None:
        """Run it in another process, and stop that with SIGTERM after it has logged a step."""
        stop_after(work / "run", step, ["recipe", "run", self.recipe, "--work", work, *words])


def stop_after(training: Path, step: int, command: Sequence[object]) -> None:
    """Run a command, and stop it with SIGTERM after a training has logged a step."""
    process = subprocess.Popen(
        [sys.executable, "-m", "transept", *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    while process.poll() is None:
        lines = read_metrics(training / "metrics.jsonl")
        if any(line["step"] >= step for line in lines if line["kind"] == "step"):
            process.send_signal(signal.SIGTERM)
            break
        time.sleep(0.005)
    shown, errors = process.communicate()
    assert process.returncode == 75, errors
    assert "Stopped. Progress is saved; run the same command to resume." in shown


def open_kitchen(directory: Path) -> Kitchen:
    data = directory / "text"
    data.mkdir(parents=True)
    for number, (name, n) in enumerate(
        {"train": 600, "more": 100, "dev": 40, "test": 12, "other": 8}.items()
    ):
        write_pairs(data / name, n, seed=number)
    (data / "train.en.xz").write_bytes(lzma.compress((data / "train.en").read_bytes()))
    (data / "train.en").unlink()
    recipe = directory / "numbers.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    return Kitchen(data, recipe)


def lines_of(shown: str) -> dict[str, str]:
    return dict(re.findall(rf"^({'|'.join(STAGES)}) +(.*)$", shown, re.M))


def record_of(work: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((work / "record.json").read_bytes())
    return record
