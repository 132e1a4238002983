"""Training with 1, 2 and 4 ranks on the same global batches: a script for `test_ranks.py`.

    python -m tests.parity.ranks DIRECTORY plain|fused|gpu

writes a file for each number of ranks; 0 is a single process without a process group.
"""

import os
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

if "gpu" not in sys.argv:
    os.environ.setdefault("TRITON_INTERPRET", "1")

import torch
from safetensors.torch import save_file
from tests.forks import by_itself, in_ranks

from transept import ModelConfig, Transformer
from transept.model.packing import Tokens
from transept.runtime.device import Runtime
from transept.runtime.distributed import ALONE, World, join_world
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.state import training_tensors
from transept.training.update import MovingAverage, Schedule, Update, make_adam

MICRO_BATCHES, STEPS, SOME, FEW = 4, 50, 10, 2
LONG = (2, 4)
"""Numbers of ranks for the longer training in double precision."""
Results = dict[str, torch.Tensor]


def tokens(chance: random.Random, n: int) -> Tokens:
    lengths = torch.tensor([chance.randint(2, 9) for _ in range(n)])
    real = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.zeros_like(real, dtype=torch.long)
    ids[real] = torch.tensor([chance.randrange(4, 50) for _ in range(int(lengths.sum()))])
    return Tokens.padded(ids, pad_id=0).without_padding()


def share(step: int, world: World) -> tuple[list[MicroBatch], int]:
    """This rank's micro-batches of a step, and the number of target tokens of all ranks.

    Their sizes differ, and one is sometimes missing, as with little data.
    """
    chance = random.Random(step)
    batches = []
    for number in range(MICRO_BATCHES):
        n = chance.randint(1, 6)
        batches.append(MicroBatch(tokens(chance, n), tokens(chance, n), number))
    if step % 3 == 2:
        batches.pop(2)
    n_target_tokens = sum(len(batch.target.ids) for batch in batches)
    return [b for b in batches if b.number % world.size == world.rank], n_target_tokens


def make(
    world: World, dtype: torch.dtype, shards: World = ALONE, clip_norm: float | None = None
) -> Update:
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=50, n_layers=1, d_model=16, d_ff=32, n_heads=2, dropout=0.1)
    model = Transformer(config).to(dtype)
    return Update(
        model,
        adam=make_adam(model, AdamConfig(), sharded_over=shards),
        schedule=Schedule(16, warmup_steps=50),
        loss=Loss(0.1, 0),
        runtime=Runtime(torch.device("cpu"), "fp32", world),
        seed=1,
        clip_norm=clip_norm,
        ema=MovingAverage(model, 0.9),
    )


def gradients(update: Update) -> Results:
    return {n: p.grad.clone() for n, p in update.model.named_parameters() if p.grad is not None}


def weights(update: Update) -> Results:
    return {name: p.detach().clone() for name, p in update.model.named_parameters()}


def losses(update: Update, steps: int) -> torch.Tensor:
    """The smoothed loss of each step, summed over all ranks."""
    world = update.runtime.world
    values = [update(step, *share(step, world)).smoothed for step in range(1, steps + 1)]
    return world.total(torch.stack(values))


def in_agreement(update: Update) -> torch.Tensor:
    """1 if all ranks hold bitwise identical weights."""
    bits = sum(int(p.detach().view(torch.int32).sum()) for p in update.model.parameters())
    highest, lowest = update.runtime.world.agree([bits, -bits])
    return torch.tensor(int(highest == -lowest))


def compute(world: World) -> Results:
    results: dict[str, Any] = {}
    update = make(world, torch.float32)
    update(1, *share(1, world))
    results["gradients"] = gradients(update)
    update = make(world, torch.float32)
    results["losses"] = {"all": losses(update, SOME), "agreement": in_agreement(update)}
    if world.size in LONG or not world.joined:
        results |= after_many_steps(world)
    for name, shards in (("whole", ALONE), ("sharded", world)):
        update = make(world, torch.float32, shards)
        losses(update, FEW)
        results[name] = training_tensors(update)
    results["suppressed"] = nan_on_last_rank(world)
    return {f"{kind}/{name}": t for kind, found in results.items() for name, t in found.items()}


def after_many_steps(world: World) -> dict[str, Results]:
    update = make(world, torch.float64, clip_norm=0.5)
    losses(update, STEPS)
    assert update.ema is not None
    return {"weights": weights(update), "average": update.ema.weights}


def nan_on_last_rank(world: World) -> Results:
    """Its gradients are NaN in one step, which must not change anything on any rank."""
    update = make(world, torch.float32)
    update(1, *share(1, world))
    before = weights(update)
    spoilt = world.rank == world.size - 1
    hook = update.model.projection.weight.register_hook(
        lambda gradient: gradient * torch.nan if spoilt else gradient
    )
    update(2, *share(2, world))
    hook.remove()
    kept = all(torch.equal(before[name], now) for name, now in weights(update).items())
    update(3, *share(3, world))
    return {
        "kept": torch.tensor(int(kept)),
        "count": update.suppressed,
        "agree": in_agreement(update),
    }


def compute_in_bf16(world: World) -> Results:
    update = make(world, torch.float32)
    update(1, *share(1, world))
    return gradients(update)


def compute_fused(world: World, device: str = "cpu", steps: int = 2) -> Results:
    """Steps of the fused update; on a CPU, its kernels run in Triton's interpreter."""
    from tests.parity.test_fused_training import TILES, side

    from transept.engines.training.update import FusedUpdate

    torch.manual_seed(0)
    config = ModelConfig(vocab_size=50, n_layers=1, d_model=32, d_ff=48, n_heads=2, dropout=0.1)
    model = Transformer(config).to(device)
    update = FusedUpdate(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=Schedule(32, warmup_steps=50),
        loss=Loss(0.1, 0),
        runtime=Runtime(torch.device(device), "fp32", world),
        seed=1,
        tiles=TILES,
        n_micro_batches=2,
    )
    micro = [
        MicroBatch(side([[[7, 9], [12]]], 50), side([[[5, 8], [14]]], 50), n) for n in range(2)
    ]
    for step in range(1, steps + 1):
        update(step, micro[world.rank :: world.size], 54)
    return {name: weight.cpu() for name, weight in weights(update).items()}


def main(directory: Path, kind: str, wire: torch.dtype | None) -> None:
    torch.set_num_threads(1)
    # A graph runs its first step, captures the second and replays the others.
    on_gpu = partial(compute_fused, device="cuda", steps=4)
    works: dict[str, Callable[[World], Results]] = {
        "plain": compute,
        "bf16": compute_in_bf16,
        "fused": compute_fused,
        "gpu": on_gpu,
    }
    with join_world(60.0, wire, print) as world:
        results = works[kind](world)
        if world.leads:
            size = world.size if world.joined else 0
            save_file(dict(results), directory / f"{kind}-{size}.safetensors")


if __name__ == "__main__":
    where, form = Path(sys.argv[1]), sys.argv[2]
    by_itself(partial(main, where, form, None))
    for ranks in {"plain": (1, 2, 4), "fused": (2,), "gpu": (1,)}[form]:
        in_ranks(ranks, partial(main, where, form, None))
    if form == "plain":
        in_ranks(2, partial(main, where, "bf16", torch.bfloat16))
