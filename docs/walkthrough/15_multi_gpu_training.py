# %% [markdown]
# # 15. Multi-GPU training
#
# *Section 5.2*
#
# **The paper's setting.** One machine with eight GPUs. A step took 0.4 seconds for the base model
# and 1.0 second for the big one.
#
# **Data parallelism** gives each process (a **rank**) a copy of the network and a part of the
# batch. Each rank computes gradients of its part. The gradients are summed over all ranks
# (**all-reduce**), and each rank makes the same update. With $R$ ranks, batches $B_r$ and $n$
# target tokens in all of them:
#
# $$g = \sum_{r=1}^{R} g_r \qquad g_r = \nabla_w \; \frac{1}{n} \sum_{t \in B_r} L_t(w)$$
#
# The sum is the gradient of the whole batch. A run on eight GPUs should therefore give the same
# network as a run on one. This chapter checks that with two ranks, which run on the CPU.

# %%
import json
import os
import subprocess
import sys
import tempfile
from inspect import getsource
from pathlib import Path

from matplotlib import pyplot as plt

from transept.runtime.distributed import World
from transept.training.ranks import _sum_over_ranks, replicate

# %% [markdown]
# ## The source
#
# PyTorch's `DistributedDataParallel` copies the weights of rank 0 to all ranks. It starts to send
# gradients while the backward pass still computes others. By default it averages them. Here they
# are summed, because the loss is already divided by the number of tokens of *all* ranks. An average
# of averages would be wrong: ranks have different numbers of tokens.

# %%
print(getsource(replicate))
print(getsource(_sum_over_ranks))

# %% [markdown]
# ## A script for any number of ranks
#
# `torchrun` starts the processes. Each learns its rank from the environment and joins the others.
# The batch has four **micro-batches**. One rank computes all four, each of two ranks computes two.
# Dropout is seeded with the step and the number of the micro-batch, so it is the same on any rank.

# %%
SCRIPT = """
import json, sys
import torch
from transept import ModelConfig, Transformer
from transept.model.packing import Tokens, pad_rows
from transept.runtime.device import Runtime
from transept.runtime.distributed import join_world
from transept.tasks.toy import Toy
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

toy = Toy(kind="copy", n_symbols=8, min_length=3, max_length=6)

with join_world(patience=120, wire=None, report=print) as world:
    torch.manual_seed(world.rank)  # different weights: rank 0's are used
    model = Transformer(ModelConfig(
        vocab_size=toy.vocab_size, n_layers=1, d_model=64, d_ff=256, n_heads=2, dropout=0.1))
    update = Update(
        model, adam=make_adam(model, AdamConfig()), schedule=Schedule(64, warmup_steps=100),
        loss=Loss(0.1, pad_id=0), runtime=Runtime.choose("cpu", world=world), seed=1)
    losses, tokens = [], 0
    for step in range(1, 61):
        micro_batches = []
        for number in range(4):
            sides = zip(*toy.pairs(16, seed=4 * step + number))
            source, target = (Tokens.padded(pad_rows(side, 0), 0) for side in sides)
            micro_batches.append(
                MicroBatch(source.without_padding(), target.without_padding(), number))
        n = sum(len(batch.target.ids) for batch in micro_batches)
        own = micro_batches[world.rank :: world.size]
        values = update(step, own, n_target_tokens=n)
        losses.append(world.total(values.nll).item())
        tokens += sum(len(batch.target.ids) for batch in own)
    weights = [parameter.double().sum().item() for parameter in model.parameters()]
    name = f"{sys.argv[1]}/{world.size}-{world.rank}.json"
    json.dump({"losses": losses, "tokens": tokens, "weights": weights}, open(name, "w"))
"""
folder = Path(tempfile.mkdtemp())
(folder / "train.py").write_text(SCRIPT)


def run(ranks):
    """Run the script with torchrun; return what each rank recorded."""
    command = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    subprocess.run(
        [sys.executable, "-m", *command, folder / "train.py", folder],
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        check=True,
    )
    return [json.loads((folder / f"{ranks}-{rank}.json").read_text()) for rank in range(ranks)]


# %%
(one,), two = run(1), run(2)
print(f"one rank:  {one['tokens']:,} target tokens, last loss {one['losses'][-1]:.5f}")
for rank, record in enumerate(two):
    print(f"rank {rank} of 2: {record['tokens']:,} target tokens,", end=" ")
    print(f"last loss of both {record['losses'][-1]:.5f}")
assert sum(record["tokens"] for record in two) == one["tokens"]
assert two[0]["weights"] == two[1]["weights"], "both ranks have the same network"
apart = [abs(a - b) for a, b in zip(one["losses"], two[0]["losses"], strict=True)]
print(f"one rank and two differ by at most {max(apart):.0e}")
assert max(apart[:10]) < 1e-3
assert one["losses"][-1] < 0.8 * one["losses"][0]

# %%
# Figure: The loss of one rank and of two. The lines coincide.
_, axis = plt.subplots(figsize=(7.2, 2.4))
axis.plot(one["losses"], color="C1", linewidth=4, alpha=0.5, label="one rank")
axis.plot(two[0]["losses"], color="C0", linewidth=1, label="two ranks")
axis.set(xlabel="step", ylabel="−log p per token")
axis.legend()

# %% [markdown]
# The differences come from the order in which numbers are added. Each step enlarges them a little.
# Within a run, all ranks have exactly the same weights: they add the same gradients in the same
# order.
#
# ## What is sent
#
# Each step sums as many numbers as the network has parameters. In a ring of $R$ ranks, each rank
# sends $2 (R - 1) / R$ times the size of the gradients:
#
# $$\text{bytes} = \frac{2 (R - 1)}{R} \cdot 4 \cdot \text{parameters}$$

# %%
PARAMETERS = {"base": 63_045_632, "big": 214_171_648}
for name, parameters in PARAMETERS.items():
    sent = {ranks: 2 * (ranks - 1) / ranks * 4 * parameters for ranks in (2, 8, 64)}
    shown = ", ".join(f"{ranks} ranks {count / 1e6:,.0f} MB" for ranks, count in sent.items())
    print(f"{name}: {shown} per rank and step")
    assert sent[64] < 2 * sent[2], "more ranks hardly send more each"
assert World().size == 1, "without torchrun there is one rank and nothing is sent"

# %% [markdown]
# The number hardly depends on the number of ranks. The time of a step does: with more ranks, each
# has less to compute and as much to send. [How far it scales](../internals/scaling.md) models
# this for up to 512 GPUs. The [guide](../guides/many-gpus.md) has the commands for real training,
# in which a run can resume with another number of ranks.
