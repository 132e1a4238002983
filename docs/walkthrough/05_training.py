# %% [markdown]
# # 5. Training
#
# *Section 5*
#
# Four choices determine what the network learns: the sentences of a batch, the learning rate, the
# targets of the loss (**label smoothing**), and regularization by **dropout**.

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
# A batch has about 25,000 source tokens and 25,000 target tokens, for any number of sentences. The
# learning rate schedule below is made for this size, and much smaller batches are a common reason
# why reproductions fail. The loss is the mean over *target tokens*, not over sentences.

# %%
batch = BatchConfig()
print(f"{batch.source_tokens:,} source and {batch.target_tokens:,} target tokens per step")
assert batch.source_tokens == batch.target_tokens == 25_000

# %% [markdown]
# A batch may be split into parts (**gradient accumulation**). The loss of each part is a sum. It is
# divided by the number of tokens in the whole batch, so that every token has the same weight:

# %%
print(getsource(Update.accumulate))

# %% [markdown]
# ## 5.2 Training cost
#
# The paper estimates the training cost as time × number of GPUs × the sustained single-precision
# rate of one GPU, 9.5 TFLOP/s for a P100. Base took 12 hours on eight P100s, big took 3.5 days:

# %%
hour = 3600
base, big = 12 * hour * 8 * 9.5e12, 3.5 * 24 * hour * 8 * 9.5e12
print(f"base {base:.1e} FLOPs, big {big:.1e} FLOPs")
assert f"{base:.1e}" == "3.3e+18"
assert f"{big:.1e}" == "2.3e+19"

# %% [markdown]
# ## 5.3 Optimizer and learning rate
#
# The optimizer is Adam, with β2 = 0.98 instead of the usual 0.999: its estimate of the gradients'
# magnitude covers fewer steps. The learning rate changes at every step:
#
# > lrate = d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5)

# %%
print(getsource(Schedule))

# %%
steps = range(1, 20_001, 10)
# Figure: The learning rate of equation (3), for three widths and two lengths of the warm-up.
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
# The rate rises linearly at first (**warm-up**), because Adam's estimates are unreliable in the
# first steps, and post-norm stacks diverge easily then. Afterwards it falls with the inverse square
# root of the step. Wider networks have a lower rate.
#
# ## 5.4 Dropout
#
# During training, **dropout** sets each number of a sub-layer's output to zero with probability
# 0.1, and scales up the others to preserve the mean. It reduces **overfitting**. It is also applied
# to the sum of embedding and positional encoding.

# %%
dropout = Dropout(0.1).train()
dropped = dropout(torch.ones(1000, 100))
print(f"{(dropped == 0).float().mean():.1%} are zero, the mean is {dropped.mean():.3f}")
assert abs((dropped == 0).float().mean() - 0.1) < 0.01
assert abs(dropped.mean() - 1) < 0.01
assert torch.equal(dropout.eval()(torch.ones(5, 5)), torch.ones(5, 5)), "not during inference"

# %% [markdown]
# ## 5.4 Label smoothing
#
# If the target probability of the correct word is 1, the loss keeps pushing the logits apart.
# **Label smoothing** lowers the target to 0.9 and distributes the rest over the vocabulary. The
# network becomes less confident. The paper found that this makes perplexity worse, but accuracy and
# BLEU better.

# %%
print(getsource(smoothed_targets))

# %%
ids = torch.tensor([3, 6, 2, 0])
shown = {
    "ε = 0": smoothed_targets(ids, 8, label_smoothing=0.0, pad_id=0),
    "ε = 0.1, over all": smoothed_targets(ids, 8, label_smoothing=0.1, pad_id=0),
    "ε = 0.4, over all": smoothed_targets(ids, 8, label_smoothing=0.4, pad_id=0),
}
# Figure: The targets of three words. A stronger colour is a higher probability.
_, axes = plt.subplots(1, 3, figsize=(7.2, 2.0), sharey=True)
for axis, (name, targets) in zip(axes, shown.items(), strict=True):
    axis.imshow(targets[:3].numpy(), vmin=0, vmax=1)
    axis.set(title=name, xlabel="vocabulary", xticks=range(8))
    axis.set_yticks(range(3), ["word 3", "word 6", "word 2"])

for targets in shown.values():
    assert torch.allclose(targets[:3].sum(-1), torch.ones(3))
    assert targets[:3, 0].sum() == 0, "padding is never a target"

# %% [markdown]
# What happens when a correct network becomes more and more confident? Without smoothing, the loss
# keeps falling. With smoothing, there is an optimal distance between the logits. More confidence
# than that raises the loss:

# %%
sureness = torch.linspace(0, 14, 80)
# Figure: With label smoothing, the loss has a minimum.
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
# The logits of a whole batch, 25,000 × 37,000 numbers, would need 3.7 GB. The loss of the package
# therefore processes them in chunks, and computes its gradients at the same time. The result is the
# same:

# %%
states, projection = torch.randn(12, 16), torch.nn.Linear(16, 40, bias=False)
targets = torch.randint(1, 40, (12,))
sums = Loss(0.1, pad_id=0)(states, projection, targets)
plain = reference_loss(projection(states), targets, label_smoothing=0.1, pad_id=0)
print(f"chunked {sums.smoothed:.4f}, plain {plain:.4f}; unsmoothed {sums.nll:.4f}")
assert torch.allclose(sums.smoothed, plain)

# %% [markdown]
# The loss also returns the unsmoothed sum: perplexity, exp(nll / tokens), is always reported
# without smoothing.
