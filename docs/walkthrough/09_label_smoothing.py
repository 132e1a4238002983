# %% [markdown]
# # 9. Label smoothing and dropout
#
# *Section 5.4*
#
# **The paper's claim.** A network that is trained to be certain becomes too certain. It should aim
# at 0.9 for the correct token instead of 1. The perplexity gets worse by that, but accuracy and
# BLEU get better. Dropout after each sub-layer keeps the network from learning the training
# sentences by heart.

# %%
import math
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept import ModelConfig, Transformer
from transept.model.layers import Dropout
from transept.training.loss import Loss, reference_loss, smoothed_targets

torch.manual_seed(0)

# %% [markdown]
# ## Cross-entropy with smoothed targets
#
# The loss of a token is the **cross-entropy** between a target distribution $q$ and the predicted
# distribution $p$ over a vocabulary of $V$ tokens. Without smoothing, $q$ is 1 for the correct
# token $y$ and 0 for all others. **Label smoothing** gives a share $\epsilon_{\text{ls}} = 0.1$ to
# all tokens:
#
# $$L = -\sum_{v=1}^{V} q_v \log p_v \qquad
# q_v = (1 - \epsilon_{\text{ls}}) \, [v = y] + \frac{\epsilon_{\text{ls}}}{V}$$

# %%
print(getsource(smoothed_targets))

# %%
ids = torch.tensor([3, 6, 2, 0])
shown = {
    "ε = 0": smoothed_targets(ids, 8, label_smoothing=0.0, pad_id=0),
    "ε = 0.1": smoothed_targets(ids, 8, label_smoothing=0.1, pad_id=0),
    "ε = 0.4": smoothed_targets(ids, 8, label_smoothing=0.4, pad_id=0),
}
for targets in shown.values():
    assert torch.allclose(targets[:3].sum(-1), torch.ones(3))
    assert targets[:3, 0].sum() == 0, "padding is never a target"
print(shown["ε = 0.1"][0])

# %%
# Figure: The targets of three words. A stronger colour is a higher probability.
_, axes = plt.subplots(1, 3, figsize=(7.2, 2.0), sharey=True)
for axis, (name, targets) in zip(axes, shown.items(), strict=True):
    axis.imshow(targets[:3].numpy(), vmin=0, vmax=1)
    axis.set(title=name, xlabel="vocabulary", xticks=range(8))
    axis.set_yticks(range(3), ["word 3", "word 6", "word 2"])

# %% [markdown]
# What happens when a correct network becomes more and more confident? Without smoothing, the loss
# keeps falling. With smoothing, there is an optimal distance between the logits. More confidence
# than that raises the loss:

# %%
correct = torch.linspace(0, 14, 80)
losses = {}
for epsilon in (0.0, 0.1, 0.4):
    losses[epsilon] = []
    for logit in correct:
        logits = torch.zeros(1, 8)
        logits[0, 3] = logit
        loss = reference_loss(logits, torch.tensor([3]), label_smoothing=epsilon, pad_id=0)
        losses[epsilon].append(loss.item())
best = correct[losses[0.1].index(min(losses[0.1]))].item()
# At the minimum, p equals q: the logit is the logarithm of their ratio.
expected = math.log((0.9 + 0.1 / 7) / (0.1 / 7))
print(f"with ε = 0.1 the best logit is {best:.1f}; computed: {expected:.1f}")
assert abs(best - expected) < 0.2

# %%
# Figure: With label smoothing, the loss has a minimum.
_, axis = plt.subplots(figsize=(7.2, 2.6))
for epsilon, values in losses.items():
    axis.plot(correct.tolist(), values, label=f"ε = {epsilon}")
axis.set(xlabel="logit of the correct token, the others at 0", ylabel="loss")
axis.legend()

# %% [markdown]
# ## The loss of the package
#
# `reference_loss` is the equation. The logits of a whole batch, 25,000 × 37,000 numbers, would need
# 3.7 GB. `Loss` therefore processes them in chunks, and computes the gradients at the same time.
# The result is the same:

# %%
print(getsource(reference_loss))

# %%
states, projection = torch.randn(12, 16), torch.nn.Linear(16, 40, bias=False)
targets = torch.randint(1, 40, (12,))
sums = Loss(0.1, pad_id=0)(states, projection, targets)
plain = reference_loss(projection(states), targets, label_smoothing=0.1, pad_id=0)
print(f"chunked {sums.smoothed:.4f}, plain {plain:.4f}; unsmoothed {sums.nll:.4f}")
assert torch.allclose(sums.smoothed, plain)

# %% [markdown]
# The loss also returns the unsmoothed sum: the **perplexity**,
# $\exp(\text{nll} / \text{tokens})$, is always reported without smoothing.

# %% [markdown]
# ## Dropout
#
# During training, **dropout** sets each number of a sub-layer's output to zero with probability
# $P_{\text{drop}} = 0.1$, and multiplies the others by $1 / (1 - P_{\text{drop}})$ to preserve the
# mean. No number can rely on another one, which reduces **overfitting**. Dropout is also applied to
# the sum of embedding and positional encoding.

# %%
print(getsource(Dropout))

# %%
dropout = Dropout(0.1).train()
dropped = dropout(torch.ones(1000, 100))
print(f"{(dropped == 0).float().mean():.1%} are zero, the mean is {dropped.mean():.3f}")
assert abs((dropped == 0).float().mean() - 0.1) < 0.01
assert abs(dropped.mean() - 1) < 0.01
assert torch.equal(dropout.eval()(torch.ones(5, 5)), torch.ones(5, 5)), "not during inference"

# %% [markdown]
# The network behaves differently in training and in inference. The same sentence has another result
# each time while dropout is active:

# %%
model = Transformer(ModelConfig(vocab_size=50, n_layers=2, d_model=64, d_ff=128, n_heads=2))
source, target = torch.tensor([[5, 6, 7, 1]]), torch.tensor([[8, 9, 1]])
with torch.no_grad():
    noise = (model.train()(source, target) - model(source, target)).abs().mean()
    still = (model.eval()(source, target) - model(source, target)).abs().mean()
print(f"two passes differ by {noise:.2f} in training, by {still:.2f} in inference")
assert noise > 0.01 > still
