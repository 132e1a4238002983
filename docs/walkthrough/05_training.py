# %% [markdown]
# # 5. Training
#
# *Section 5*
#
# Four things decide what the network learns: which sentences come together in a step, how large a
# step is, what the network is told to predict, and what is hidden from it on purpose.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept.data.config import BatchConfig
from transept.model.layers import Dropout
from transept.training.config import AdamConfig
from transept.training.loss import Loss, reference_loss, smoothed_targets
from transept.training.update import Schedule, Update

torch.manual_seed(0)

# %% [markdown]
# ## 5.1 Batches are counted in tokens
#
# A batch has about 25,000 source tokens and 25,000 target tokens, however many sentences that is.
# Batches that are much smaller are the commonest reason why reproductions fail: the schedule below
# was made for this size. The loss is the mean over *target tokens*, not over sentences.

# %%
batch = BatchConfig()
print(f"{batch.source_tokens:,} source and {batch.target_tokens:,} target tokens to a step")
assert batch.source_tokens == batch.target_tokens == 25_000

# %% [markdown]
# Here is one whole step. The loss of each part of a batch is a sum. It is divided by the number of
# tokens in the whole batch, so that every token has the same weight:

# %%
print(getsource(Update.accumulate))

# %% [markdown]
# ## 5.2 What it costs
#
# The paper gives its cost as time × number of GPUs × what one GPU sustains in single precision, 9.5
# TFLOP/s for a P100. Base took 12 hours on eight P100s, big took 3.5 days:

# %%
hour = 3600
base, big = 12 * hour * 8 * 9.5e12, 3.5 * 24 * hour * 8 * 9.5e12
print(f"base {base:.1e} FLOPs, big {big:.1e} FLOPs")
assert f"{base:.1e}" == "3.3e+18"
assert f"{big:.1e}" == "2.3e+19"

# %% [markdown]
# ## 5.3 How large a step is
#
# The optimizer is Adam, with β2 = 0.98 instead of the usual 0.999: it has a shorter memory of how
# large gradients are. The learning rate changes at every step:
#
# > lrate = d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)

# %%
print(getsource(Schedule))

# %%
steps = range(1, 20_001, 10)
_, axis = plt.subplots()
for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000), (1024, 4000)):
    rate = Schedule(d_model, warmup)
    axis.plot(steps, [rate(step) for step in steps], label=f"{d_model}, {warmup:,} warm-up steps")
axis.set(xlabel="step", ylabel="learning rate")
axis.legend(frameon=False, title="d_model")

rate = Schedule(512, 4000)
highest = max(range(1, 20_000), key=rate)
print(f"highest at step {highest:,}: {rate(highest):.2e}")
assert highest == 4000
assert abs(rate(2000) - rate(4000) / 2) < 1e-12, "linear on the way up"
assert abs(rate(16_000) - rate(4000) / 2) < 1e-12, "the inverse square root on the way down"
assert (AdamConfig().beta1, AdamConfig().beta2, AdamConfig().epsilon) == (0.9, 0.98, 1e-9)

# %% [markdown]
# The rate rises at first, because in its first steps Adam hardly knows how large gradients are, and
# post-norm stacks do not forgive large steps then. It falls later, because later steps should be
# finer. Wider networks take smaller steps.
#
# ## 5.4 Dropout
#
# During training, each number of a sub-layer's output is set to zero with probability 0.1, and the
# others are scaled up so that the mean stays. The same happens to the sum of word and position.

# %%
dropout = Dropout(0.1).train()
dropped = dropout(torch.ones(1000, 100))
print(f"{(dropped == 0).float().mean():.1%} are zero, the mean is {dropped.mean():.3f}")
assert abs((dropped == 0).float().mean() - 0.1) < 0.01
assert abs(dropped.mean() - 1) < 0.01
assert torch.equal(dropout.eval()(torch.ones(5, 5)), torch.ones(5, 5)), "not when translating"

# %% [markdown]
# ## 5.4 Label smoothing
#
# If a network is told that the right word has probability 1, it pushes its logits apart for ever.
# So it is told 0.9, and the rest is spread over the vocabulary. This makes it less sure of itself.
# The paper found that perplexity becomes worse, and translations become better.

# %%
print(getsource(smoothed_targets))

# %%
ids = torch.tensor([3, 6, 2, 0])
shown = {
    "ε = 0": smoothed_targets(ids, 8, label_smoothing=0.0, pad_id=0),
    "ε = 0.1, over all": smoothed_targets(ids, 8, label_smoothing=0.1, pad_id=0),
    "ε = 0.4, over all": smoothed_targets(ids, 8, label_smoothing=0.4, pad_id=0),
}
_, axes = plt.subplots(1, 3, figsize=(7.2, 2.0), sharey=True)
for axis, (name, targets) in zip(axes, shown.items(), strict=True):
    axis.imshow(targets[:3].numpy(), vmin=0, vmax=1)
    axis.set(title=name, xlabel="vocabulary", xticks=range(8))
    axis.set_yticks(range(3), ["word 3", "word 6", "word 2"])

for targets in shown.values():
    assert torch.allclose(targets[:3].sum(-1), torch.ones(3))
    assert targets[:3, 0].sum() == 0, "padding is never right"

# %% [markdown]
# What happens when a network is right and becomes more and more sure? Without smoothing, the loss
# falls for ever. With smoothing, there is a best distance between the logits, and being surer than
# that raises the loss:

# %%
sureness = torch.linspace(0, 14, 80)
_, axis = plt.subplots(figsize=(7.2, 2.6))
for epsilon in (0.0, 0.1, 0.4):
    losses = []
    for logit in sureness:
        logits = torch.zeros(1, 8)
        logits[0, 3] = logit
        target = torch.tensor([3])
        losses.append(reference_loss(logits, target, label_smoothing=epsilon, pad_id=0).item())
    axis.plot(sureness.tolist(), losses, label=f"ε = {epsilon}")
    if epsilon == 0.1:
        best = sureness[losses.index(min(losses))].item()
axis.set(xlabel="logit of the right word, the others at 0", ylabel="loss")
axis.legend(frameon=False)
print(f"with ε = 0.1 and 8 entries the best logit is about {best:.1f}")
assert 3 < best < 6

# %% [markdown]
# The logits of a whole batch, 25,000 × 37,000 numbers, would take 3.7 GB. So the loss that is used
# goes through them in chunks, and computes its gradients on the way. It is the same number:

# %%
states, projection = torch.randn(12, 16), torch.nn.Linear(16, 40, bias=False)
targets = torch.randint(1, 40, (12,))
sums = Loss(0.1, pad_id=0)(states, projection, targets)
plain = reference_loss(projection(states), targets, label_smoothing=0.1, pad_id=0)
print(f"chunked {sums.smoothed:.4f}, plain {plain:.4f}; unsmoothed {sums.nll:.4f}")
assert torch.allclose(sums.smoothed, plain)

# %% [markdown]
# The unsmoothed sum is kept beside it: perplexity, exp(nll / tokens), is always reported without
# smoothing.
