# %% [markdown]
# # 2. Scaled dot-product and multi-head attention
#
# *Section 3.2*
#
# Attention is a soft lookup. Each position of a sentence has three vectors: a **query** describes
# what the position looks for, a **key** describes what it offers, and a **value** is its content.
# The dot product of a query and a key is their score. A softmax turns the scores of a query into
# weights that sum to 1. The result for a position is the weighted mean of the values.

# %%
import math
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept.model.attention import (
    MultiHeadAttention,
    attention_weights,
    fused_attention,
    reference_attention,
)
from transept.model.packing import Band, Tokens, visible

torch.manual_seed(0)

# %% [markdown]
# ## Equation (1): scaled dot-product attention
#
# > Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V
#
# The package has two short functions for it. One computes the weights:

# %%
print(getsource(attention_weights))

# %% [markdown]
# The other applies them:

# %%
print(getsource(reference_attention))

# %% [markdown]
# The letters in the signatures are shapes: B sentences, H heads, T queries, S keys. The tests check
# them. This example can be computed by hand: one query, two keys. The first key points in the
# direction of the query, the second is orthogonal to it.

# %%
q = torch.tensor([2.0, 0.0]).view(1, 1, 1, 2)
k = torch.tensor([[2.0, 0.0], [0.0, 2.0]]).view(1, 1, 2, 2)
v = torch.tensor([[10.0], [20.0]]).view(1, 1, 2, 1)
everything = torch.ones(1, 1, 2, dtype=torch.bool)

weights = attention_weights(q, k, everything).flatten()
result = reference_attention(q, k, v, everything).item()
print("weights", [round(w, 4) for w in weights.tolist()], "result", round(result, 4))

first = math.exp(4 / math.sqrt(2)) / (math.exp(4 / math.sqrt(2)) + 1)
assert math.isclose(weights[0].item(), first, rel_tol=1e-6)
assert math.isclose(result, 10 * first + 20 * (1 - first), rel_tol=1e-6)

# %% [markdown]
# ## Why divide by √d_k
#
# Take queries and keys whose components are independent, with mean 0 and variance 1. Their dot
# product is a sum of d_k products, so its variance is d_k. The larger d_k, the larger the scores. A
# softmax of large scores saturates: one weight is close to 1, and the gradient almost vanishes.
# Dividing by √d_k keeps the standard deviation of the scores at 1 for every d_k.

# %%
widths = [4, 16, 64, 256, 1024]
plain, scaled, largest = [], [], []
for d_k in widths:
    queries, keys = torch.randn(2, 2000, d_k)
    scores = (queries * keys).sum(-1)
    plain.append(scores.std().item())
    scaled.append((scores / math.sqrt(d_k)).std().item())
    rows = torch.randn(200, d_k) @ torch.randn(d_k, 10)
    largest.append(
        (rows.softmax(-1).amax(-1).mean(), (rows / d_k**0.5).softmax(-1).amax(-1).mean())
    )

# Figure: Without the division (red), scores grow with d_k and one weight dominates.
_, (left, right) = plt.subplots(1, 2)
left.loglog(widths, plain, "o-", color="tab:red", label="q · k")
left.loglog(widths, scaled, "o-", color="tab:purple", label="q · k / √d_k")
left.set(xlabel="d_k", title="standard deviation of the scores")
left.legend(frameon=False)
right.semilogx(widths, [a.item() for a, _ in largest], "o-", color="tab:red")
right.semilogx(widths, [b.item() for _, b in largest], "o-", color="tab:purple")
right.set(xlabel="d_k", ylim=(0, 1.05), title="the largest of ten weights, on average")

assert all(0.9 < s < 1.1 for s in scaled)
assert plain[-1] > 25

# %% [markdown]
# ## Masking: who may look at whom
#
# A mask defines which keys a query may attend to. Masked scores become −∞ before the softmax, so
# their weight is exactly zero. There are three kinds of attention in the network and a fourth in
# section 4 of the paper. All of them follow one rule: *a query attends only to keys of the same
# sentence, within a band of positions*.

# %%
print(getsource(visible))

# %% [markdown]
# These are four such masks, for a batch row with two sentences (of five and three words, and two
# positions of padding). A marked square means that a query (row) may attend to a key (column):

# %%
segments = torch.tensor([[1, 1, 1, 1, 1, 2, 2, 2, 0, 0]])
positions = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 0, 0]])
layout = Tokens.tiled(segments, segments, positions).layout
kinds = {
    "encoder": Band(),
    "decoder": Band.causal(),
    "restricted, r = 3": Band.restricted(3),
    "restricted decoder, r = 3": Band.causal_restricted(3),
}
masks = {name: visible(layout, layout, band)[0] for name, band in kinds.items()}

# Figure: A filled square: the query (row) may attend to the key (column).
_, axes = plt.subplots(1, 4, figsize=(7.2, 2.2))
for axis, (name, mask) in zip(axes, masks.items(), strict=True):
    axis.imshow(mask.numpy(), vmin=0, vmax=1.4)
    axis.set_title(name, fontsize=8)
    axis.set(xticks=[], yticks=[])

causal = masks["decoder"]
assert not causal[:8, :8].triu(1).any(), "no word attends to a later one"
assert not causal[5:8, :5].any(), "no word attends to another sentence"
assert masks["restricted, r = 3"][:5].sum(-1).tolist() == [2, 3, 3, 3, 2]

# %% [markdown]
# (The block at the lower right is padding. It attends to itself, because a softmax over no scores
# is NaN. Its result is never used.)
#
# ## Multi-head attention
#
# A single weighted mean blends everything that a position attends to. The paper therefore computes
# h of them in parallel. Each **head** projects queries, keys and values to fewer dimensions, with
# its own matrices, and attends. The results are concatenated and projected once more.
#
# > MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O

# %%
print(getsource(MultiHeadAttention.forward))

# %% [markdown]
# With d_k = d_v = d_model / h, eight heads cost as much as one wide head. d_k and d_v can also be
# set independently, as rows A and B of Table 3 require.

# %%
for n_heads, d_k in ((8, 64), (1, 512), (8, 16)):
    attention = MultiHeadAttention(512, n_heads, d_k, 64 if n_heads == 8 else 512)
    count = sum(p.numel() for p in attention.parameters())
    print(f"{n_heads} heads, d_k = {d_k:3}: {count:,} weights")
assert sum(p.numel() for p in MultiHeadAttention(512, 8, 64, 64).parameters()) == 4 * 512**2

# %% [markdown]
# ## The reference and the fast implementation
#
# `reference_attention` stores the whole matrix of weights in memory. PyTorch has kernels that do
# not, and the network uses those. Each fast implementation in this package has a reference
# implementation, and a test checks that the two agree:

# %%
q, k, v = (torch.randn(2, 4, 10, 16) for _ in range(3))
mask = causal.expand(2, -1, -1)
difference = (fused_attention(q, k, v, mask) - reference_attention(q, k, v, mask)).abs().max()
print(f"fused and plain differ by at most {difference:.1e}")
assert difference < 1e-5
