# %% [markdown]
# # 12. Break it and see: ablations
#
# An **ablation** removes one part of a model to see what the part is for. This chapter removes or
# changes parts of the network of [the last chapter](11_copy_task.py), one at a time. Each ablation
# is one changed line, marked with `# ←`, and trains in a few seconds on a CPU. Change other lines
# and run the chapter again.

# %%
import math

import torch
from matplotlib import pyplot as plt
from torch.nn import functional as F

from transept import ModelConfig, Transformer
from transept.model.layers import PostNorm
from transept.model.packing import Band, Tokens, pad_rows
from transept.runtime.device import Runtime
from transept.tasks.toy import Toy
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss
from transept.training.update import Schedule, Update, make_adam

torch.set_num_threads(1)  # a second thread does not help with such small matrices
toy = Toy(kind="copy", n_symbols=8, min_length=3, max_length=6)

# %% [markdown]
# ## The experiment
#
# `network` is a Transformer of one layer, `train` shows it 160 batches of 64 sequences, and
# `copies` counts how many of 200 further sequences it then copies without a mistake. The seeds are
# fixed, so all networks see the same sequences.


# %%
def network(attend=None, **changes):
    """A small Transformer, with changes to its config."""
    torch.manual_seed(1)
    sizes = {"n_layers": 1, "d_model": 64, "d_ff": 256, "n_heads": 2, "dropout": 0.0}
    config = ModelConfig(vocab_size=toy.vocab_size, **{**sizes, **changes})
    return Transformer(config) if attend is None else Transformer(config, attend=attend)


def train(model, rate, steps=160, size=64):
    """The loss of each step, −log p per token, without label smoothing."""
    update = Update(
        model,
        adam=make_adam(model, AdamConfig()),
        schedule=rate,
        loss=Loss(label_smoothing=0.1, pad_id=0),
        runtime=Runtime.choose("cpu"),
        seed=1,
    )
    losses = []
    for step in range(1, steps + 1):
        sides = zip(*toy.pairs(size, seed=step), strict=True)
        source, target = (Tokens.padded(pad_rows(side, 0), 0).without_padding() for side in sides)
        values = update(step, [MicroBatch(source, target)], n_target_tokens=len(target.ids))
        losses.append(values.nll.item())
    return losses


@torch.no_grad()
def copies(model):
    """The number of 200 new sequences that greedy search copies without a mistake."""
    model.eval()
    sources, targets = zip(*toy.pairs(200, seed=10_000), strict=True)
    memory = model.encode(pad_rows(sources, 0))
    # The last column is a placeholder: the network shifts its input and never reads it.
    written = torch.ones(200, 1, dtype=torch.long)
    for i in range(7):
        logits = model.decode(written, memory).view(200, i + 1, -1)[:, i]
        logits[:, 0] = -math.inf  # padding
        written[:, i] = logits.argmax(-1)
        written = F.pad(written, (0, 1), value=1)
    outputs = zip(written.tolist(), targets, strict=True)
    return sum(output[: len(target)] == target for output, target in outputs)


curves, right = {}, {}


def record(name, model, rate, **settings):
    """Train a network, and store its losses and its copies."""
    losses = train(model, rate, **settings)
    curves[name], right[name] = losses, copies(model)
    print(f"{name}: loss {sum(losses[-10:]) / 10:.2f}, {right[name]} of 200 copies right")


def plot(*names):
    """The losses of these networks."""
    _, axis = plt.subplots(figsize=(7.2, 2.6))
    for name in names:
        means = torch.tensor(curves[name]).unfold(0, 5, 5).mean(-1)
        axis.plot(range(3, len(curves[name]) + 1, 5), means.tolist(), label=name)
    axis.set(xlabel="step", ylabel="−log p per token", ylim=(0, 3))
    axis.legend()


# %% [markdown]
# ## The intact network

# %%
warm_up = Schedule(64, warmup_steps=100)
record("intact", network(), warm_up)
assert right["intact"] > 120

# %% [markdown]
# ## No positional encoding
#
# The network sees a bag of symbols. It learns *which* symbols occur, and has to guess their order.

# %%
model = network()
model.source_positions.table.zero_()  # ←
record("no positional encoding", model, warm_up)
assert right["no positional encoding"] < 60

# %% [markdown]
# ## No mask in the decoder
#
# The decoder may now read the symbol that it has to predict: it is the next symbol of its
# input. The loss falls as before, or faster. The network has learned to look up the answer, and at
# inference it has no answer to look up. A good loss does not prove a good model.

# %%
model = network()
model.decoder.band = Band()  # ←
record("no mask", model, warm_up)
assert sum(curves["no mask"][-10:]) / 10 < 0.4
assert right["no mask"] < right["intact"] - 40

# %% [markdown]
# ## No division by $\sqrt{d_k}$
#
# The scores are $\sqrt{32}$ times as large. The softmax saturates ([chapter
# 2](02_scaled_dot_product_attention.py)), and hardly any gradient reaches queries and keys.


# %%
def unscaled(q, k, v, mask, dropout=0.0):
    """Equation (1) without the division."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None], scale=1.0)  # ←


record("no √d_k", network(attend=unscaled), warm_up)
assert right["no √d_k"] < 60

# %%
# Figure: Without a mask the loss is excellent, and most copies are wrong.
plot("intact", "no positional encoding", "no mask", "no √d_k")

# %% [markdown]
# ## No residual connections
#
# Each sub-layer now replaces its input instead of adding to it. The symbol and its position have to
# survive every attention. The network hardly learns. It has two layers, and is compared with an
# intact network of two layers.

# %%
record("two layers", network(n_layers=2), warm_up)
model = network(n_layers=2)
for module in model.modules():
    if isinstance(module, PostNorm):
        module.forward = lambda x, sublayer, norm=module.norm: norm(sublayer(x))  # ←
record("two layers, no residuals", model, warm_up)
assert right["two layers, no residuals"] < right["two layers"] - 50

# %%
# Figure: Two layers, with and without residual connections.
plot("two layers", "two layers, no residuals")

# %% [markdown]
# ## A single head
#
# One head of width 64 instead of two of width 32. To copy, a network needs to read one symbol at a
# time, and one head is enough. For translation the paper measured a loss of 0.9 BLEU ([Table
# 3](16_table_3.py), row A). An ablation is only as good as its task.

# %%
record("one head", network(n_heads=1), warm_up)  # ←
assert right["one head"] > 60

# %% [markdown]
# ## No warm-up
#
# The learning rate starts at its maximum, 0.0125, instead of rising for 100 steps. The first steps
# destroy the network: its losses are those of a network that ignores the source.


# %%
class NoWarmUp:
    """Equation (3) without its rising part."""

    def __call__(self, step):
        """The learning rate of a step."""
        return warm_up(max(step, 100))  # ←


record("no warm-up", network(), NoWarmUp())
assert right["no warm-up"] < 60

# %%
# Figure: One head is as good as two here. Without warm-up, the network does not learn.
plot("intact", "one head", "no warm-up")

# %% [markdown]
# ## Post-norm and pre-norm without warm-up
#
# Four layers, a third of the learning rate, with and without warm-up. The post-norm network of the
# paper depends on the warm-up. With pre-norm, the residual stream passes every layer unchanged, the
# first gradients are moderate, and the network trains either way. This is one reason why most
# later models use pre-norm. (Reproductions of the paper report
# about one BLEU more with post-norm after full training.)

# %%
for norm in ("post", "pre"):
    for name, start in (("warm-up", 60), ("no warm-up", 1)):
        record(
            f"{norm}-norm, {name}",
            network(n_layers=4, norm=norm),  # ←
            lambda step, start=start: 0.004 * min(1, step / start),
            steps=100,
            size=32,
        )
last = {name: sum(losses[-10:]) / 10 for name, losses in curves.items()}
assert last["post-norm, no warm-up"] > last["pre-norm, no warm-up"] + 0.5
assert last["post-norm, no warm-up"] > last["post-norm, warm-up"] + 0.2

# %%
# Figure: Four layers. Post-norm needs the warm-up, pre-norm does not.
plot(*(f"{norm}-norm, {name}" for norm in ("post", "pre") for name in ("warm-up", "no warm-up")))

# %% [markdown]
# ## All of them

# %%
for name, count in right.items():
    print(f"{name:26} loss {last[name]:5.2f}   {count:3} of 200 right")

# %%
# Figure: Correct copies, of 200. The last four networks have four layers and saw fewer sequences.
_, axis = plt.subplots(figsize=(7.2, 3.4))
axis.barh([*right], [*right.values()], color=["C0" if n > 60 else "C1" for n in right.values()])
axis.bar_label(axis.containers[0], padding=4)
axis.set(xlim=(0, 220), xlabel="correct copies, of 200")
axis.invert_yaxis()
