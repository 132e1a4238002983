# %% [markdown]
# # 8. Training: Adam, warm-up and one whole step
#
# *Sections 5.1 to 5.3*
#
# **The paper's claim.** The network needs 100,000 steps of 25,000 target tokens each: 12 hours on
# eight GPUs of 2016 for the base model. The optimizer is Adam. The learning rate must rise slowly
# at first (**warm-up**), and falls afterwards with the square root of the step.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept import ModelConfig, Transformer
from transept.data.config import BatchConfig
from transept.model.packing import Tokens, pad_rows
from transept.runtime.device import Runtime
from transept.tasks.toy import Toy
from transept.training.batches import MicroBatch
from transept.training.config import AdamConfig
from transept.training.loss import Loss, reference_loss
from transept.training.update import Objective, Schedule, Update, make_adam

torch.manual_seed(0)

# %% [markdown]
# ## Equation (3): the learning rate
#
# $$\text{lrate} = d_{\text{model}}^{-0.5} \cdot
# \min(\text{step}^{-0.5}, \; \text{step} \cdot \text{warmup}^{-1.5})$$
#
# The first argument of the minimum is smaller after the warm-up of 4,000 steps, the second one
# before. Wider networks have a lower rate.

# %%
print(getsource(Schedule))

# %%
rate = Schedule(d_model=512, warmup_steps=4000)
highest = max(range(1, 20_000), key=rate)
print(f"highest at step {highest:,}: {rate(highest):.2e}")
assert highest == 4000
assert abs(rate(2000) - rate(4000) / 2) < 1e-12, "linear on the way up"
assert abs(rate(16_000) - rate(4000) / 2) < 1e-12, "the inverse square root on the way down"

# %%
# Figure: The learning rate of equation (3), for three widths and two lengths of the warm-up.
_, axis = plt.subplots(figsize=(7.2, 2.8))
steps = range(1, 20_001, 10)
for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000), (1024, 4000)):
    rates = [Schedule(d_model, warmup)(step) for step in steps]
    axis.plot(steps, rates, label=f"{d_model}, {warmup:,} warm-up steps")
axis.set(xlabel="step", ylabel="learning rate")
axis.legend(title="d_model")

# %% [markdown]
# Why a warm-up? In the first steps, Adam's estimates come from few gradients and are unreliable,
# and the gradients of a post-norm network are large. [Chapter 12](12_break_it_and_see.py) trains
# without it.
#
# ## Adam
#
# Adam divides a running mean of the gradient $g$ by the root of a running mean of its square:
#
# $$m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t$$
#
# $$v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2$$
#
# $$w_t = w_{t-1} - \text{lrate} \cdot
# \frac{m_t / (1 - \beta_1^t)}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}$$
#
# The paper uses $\beta_1 = 0.9$, $\beta_2 = 0.98$ and $\epsilon = 10^{-9}$. The usual $\beta_2$ is
# 0.999. With 0.98, the estimate covers about 50 steps instead of 1,000, and follows the gradients
# faster.

# %%
adam_config = AdamConfig()
print(adam_config)
assert (adam_config.beta1, adam_config.beta2, adam_config.epsilon) == (0.9, 0.98, 1e-9)

# %% [markdown]
# ## Batches are counted in tokens
#
# A batch has about 25,000 source tokens and 25,000 target tokens, for any number of sentences. The
# learning rate is made for this size. Much smaller batches are a common reason why reproductions
# fail.

# %%
batch_config = BatchConfig()
assert batch_config.source_tokens == batch_config.target_tokens == 25_000
print(f"{batch_config.source_tokens:,} source and {batch_config.target_tokens:,} target tokens")

# %% [markdown]
# ## One whole step
#
# `Objective` runs the network and the loss on a batch. `Update` does the rest: the backward pass,
# the learning rate, Adam.

# %%
print(getsource(Objective.forward))
print(getsource(Update.__call__))
print(getsource(Update.accumulate))
print(getsource(Update._backward))
print(getsource(Update._apply_gradients))

# %% [markdown]
# A batch that does not fit into memory is cut into **micro-batches**, whose gradients are
# accumulated. The loss of each is a *sum* over its tokens, divided by the number of tokens of the
# whole batch. So every token has the same weight, however the batch is cut. A step whose gradient
# is not finite is skipped.
#
# ## The same step in plain PyTorch
#
# One step of the package, and the same step written out, must give the same weights. The task is to
# copy a sequence of symbols:

# %%
toy = Toy(kind="copy", n_symbols=8, min_length=3, max_length=6)
source_ids, target_ids = (pad_rows(side, 0) for side in zip(*toy.pairs(32, seed=1), strict=True))
print("source_ids", tuple(source_ids.shape), "target_ids", tuple(target_ids.shape))
config = ModelConfig(vocab_size=toy.vocab_size, n_layers=1, d_model=64, n_heads=2, dropout=0.0)
schedule = Schedule(config.d_model, warmup_steps=100)


def network():
    """A network with the same weights each time."""
    torch.manual_seed(1)
    return Transformer(config)


ours = network()
update = Update(
    ours,
    adam=make_adam(ours, adam_config),
    schedule=schedule,
    loss=Loss(label_smoothing=0.1, pad_id=0),
    runtime=Runtime.choose("cpu"),
    seed=1,
)
batch = MicroBatch(Tokens.padded(source_ids, 0), Tokens.padded(target_ids, 0))
n_tokens = int((target_ids != 0).sum())

plain = network()
adam = torch.optim.Adam(plain.parameters(), betas=(0.9, 0.98), eps=1e-9)
for step in (1, 2, 3):
    values = update(step, [batch], n_target_tokens=n_tokens)

    adam.zero_grad()
    logits = plain(source_ids, target_ids)
    loss = reference_loss(logits.flatten(0, 1), target_ids.flatten(), label_smoothing=0.1, pad_id=0)
    (loss / n_tokens).backward()
    for group in adam.param_groups:
        group["lr"] = schedule(step)
    adam.step()
    print(f"step {step}: loss {values.smoothed:.4f}, plain {loss / n_tokens:.4f}")
    assert abs(values.smoothed.item() - loss.item() / n_tokens) < 1e-3

apart = torch.cat(
    [(a - b).flatten() for a, b in zip(ours.parameters(), plain.parameters(), strict=True)]
)
print(f"after three steps, the weights differ by {apart.abs().mean():.0e} on average")
assert apart.abs().mean() < 1e-5

# %% [markdown]
# ## Training cost
#
# The paper estimates the training cost as time × number of GPUs × the sustained single-precision
# rate of one GPU, 9.5 TFLOP/s for a P100. Base took 12 hours on eight of them, big took 3.5 days:

# %%
hour = 3600
base, big = 12 * hour * 8 * 9.5e12, 3.5 * 24 * hour * 8 * 9.5e12
print(f"base {base:.1e} FLOPs, big {big:.1e} FLOPs")
assert f"{base:.1e}" == "3.3e+18"
assert f"{big:.1e}" == "2.3e+19"
