"""Steps, plain and compiled: run as a script by `test_compiled.py`.

    python -m tests.parity.compiled cpu|cuda fp32|bf16

prints their largest distance. It is a separate process because the compiler does not support the
shape checks that the tests add to the package.
"""

import json
import sys
from collections.abc import Sequence
from typing import Literal

import torch
from tests.parity.steps import Gradients, furthest, gradients, tiles
from torch._dynamo.utils import counters

from transept import ModelConfig
from transept.assembly import build_update
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.shapes import Tensor
from transept.training.batches import MicroBatch
from transept.training.config import TrainingConfig
from transept.training.update import Update

# One layer per stack: more layers take the compiler longer and add no coverage.
MODEL = ModelConfig(vocab_size=500, n_layers=1, d_model=64, d_ff=128, n_heads=4, dropout=0.0)
WIDTHS = (32, 36, 40, 48)
"""Packed batches have various lengths."""


def update(compiled: Literal["never", "always"], runtime: Runtime) -> Update:
    training = TrainingConfig(kernels="plain", compile=compiled)
    return build_update(Experiment(model=MODEL, training=training), runtime)


def steps(update: Update, batches: Sequence[MicroBatch]) -> list[tuple[Tensor, Gradients]]:
    """Loss and gradients of each batch by itself."""
    found = []
    for batch in batches:
        update.model.zero_grad()
        found.append(gradients(update, batch))
    return found


def main() -> None:
    device, precision = sys.argv[1:]
    runtime = Runtime.choose(device, precision)
    batches = [tiles(runtime.device.type, width=width) for width in WIDTHS]
    torch.backends.cuda.matmul.allow_tf32 = False
    plain = steps(update("never", runtime), batches)
    before = counters["stats"]["unique_graphs"]
    compiled = steps(update("always", runtime), batches)
    pairs = [*zip(compiled, plain, strict=True)]
    found = {
        "loss": max(float((x - y).abs() / y) for (x, _), (y, _) in pairs),
        "gradients": max(furthest(x, y) for (_, x), (_, y) in pairs),
        "graphs_before": before,
        "graphs": counters["stats"]["unique_graphs"],
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
