"""A step, plain and compiled: run as a script by `test_compiled.py`.

    python -m tests.parity.compiled cpu|cuda fp32|bf16

prints their distance. It is a separate process because the compiler does not support the shape
checks that the tests add to the package.
"""

import json
import sys
from typing import Literal

import torch
from tests.parity.steps import furthest, gradients, tiles
from torch._dynamo.utils import counters

from transept import ModelConfig
from transept.assembly import build_update
from transept.experiment import Experiment
from transept.runtime.device import Runtime
from transept.training.config import TrainingConfig
from transept.training.update import Update

# One layer per stack: more layers take the compiler longer and add no coverage.
MODEL = ModelConfig(vocab_size=500, n_layers=1, d_model=64, d_ff=128, n_heads=4, dropout=0.0)


def update(compiled: Literal["never", "always"], runtime: Runtime) -> Update:
    training = TrainingConfig(kernels="plain", compile=compiled)
    return build_update(Experiment(model=MODEL, training=training), runtime)


def main() -> None:
    device, precision = sys.argv[1:]
    runtime = Runtime.choose(device, precision)
    batch = tiles(runtime.device.type)
    torch.backends.cuda.matmul.allow_tf32 = False
    loss, plain = gradients(update("never", runtime), batch)
    before = counters["stats"]["unique_graphs"]
    other, compiled = gradients(update("always", runtime), batch)
    found = {
        "loss": float((other - loss).abs() / loss),
        "gradients": furthest(compiled, plain),
        "graphs_before": before,
        "graphs": counters["stats"]["unique_graphs"],
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
