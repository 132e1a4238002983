# %% [markdown]
# # 2. Attention
#
# *Section 3.2*
#
# Each place of a sentence asks a question, and every place offers an answer together with a label
# that says what the answer is about. The question is a vector, the **query**; the labels are
# **keys**; the answers are **values**. The dot product of a key and a query says how well they fit.
# A softmax turns these products into weights. The result for a place is the weighted mean of the
# values.

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
# ## Equation (1)
#
# > Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V
#
# In the package it is two short functions, one for the weights:

# %%
print(getsource(attention_weights))

# %% [markdown]
# and one that applies them:

# %%
print(getsource(reference_attention))

# %% [markdown]
# The letters in the signatures are shapes: B sentences, H heads, T queries, S keys. The tests check
# them. Here is an example that you can compute without a machine: one query, two keys. The first
# key points in the direction of the query, the second is at a right angle to it.

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
# Take queries and keys whose numbers are independent, with mean 0 and variance 1. Their dot
# product is a sum of d_k products, so its variance is d_k. The wider the head, the larger the
# scores, and a softmax of large numbers is nearly all or nothing: its gradient vanishes almost
# everywhere. Dividing by √d_k keeps the scores at size one whatever the width.

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

_, (left, right) = plt.subplots(1, 2)
left.loglog(widths, plain, "o-", color="tab:red", label="q · k")
left.loglog(widths, scaled, "o-", color="tab:purple", label="q · k / √d_k")
left.set(xlabel="d_k", title="how large scores are")
left.legend(frameon=False)
right.semilogx(widths, [a.item() for a, _ in largest], "o-", color="tab:red")
right.semilogx(widths, [b.item() for _, b in largest], "o-", color="tab:purple")
right.set(xlabel="d_k", ylim=(0, 1.05), title="the largest of ten weights, on average")

assert all(0.9 < s < 1.1 for s in scaled)
assert plain[-1] > 25

# %% [markdown]
# ## Who may look at whom
#
# A mask says which keys a query may see. Illegal scores become −∞ before the softmax, so their
# weight is exactly zero. There are three kinds of attention in the network and a fourth in section
# 4 of the paper. All of them follow one rule: *a query sees only keys of the same sentence, and
# none that are further away than a band allows*.

# %%
print(getsource(visible))

# %% [markdown]
# Here are four such masks, for a batch row with two sentences (of five and three words, and two
# places of padding). A marked square means that a query (row) may see a key (column):

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

_, axes = plt.subplots(1, 4, figsize=(7.2, 2.2))
for axis, (name, mask) in zip(axes, masks.items(), strict=True):
    axis.imshow(mask.numpy(), vmin=0, vmax=1.4)
    axis.set_title(name, fontsize=8)
    axis.set(xticks=[], yticks=[])

causal = masks["decoder"]
assert not causal[:8, :8].triu(1).any(), "no word sees a later one"
assert not causal[5:8, :5].any(), "no word sees another sentence"
assert masks["restricted, r = 3"][:5].sum(-1).tolist() == [2, 3, 3, 3, 2]

# %% [markdown]
# (The block at the lower right is padding. It may look at itself, because a softmax over nothing is
# not a number. Nothing ever reads the result.)
#
# ## Several heads
#
# One weighted mean can look at only one thing at a time. So the paper uses h of them side by side.
# Each **head** projects queries, keys and values to fewer dimensions, with its own matrices, and
# attends. The results are concatenated and projected once more.
#
# > MultiHead(Q, K, V) = Concat(head_1, …, head_h) W_O

# %%
print(getsource(MultiHeadAttention.forward))

# %% [markdown]
# With d_k = d_v = d_model / h, eight heads cost as much as one wide head. But you can set d_k and
# d_v freely: rows A and B of Table 3 need that.

# %%
for n_heads, d_k in ((8, 64), (1, 512), (8, 16)):
    attention = MultiHeadAttention(512, n_heads, d_k, 64 if n_heads == 8 else 512)
    count = sum(p.numel() for p in attention.parameters())
    print(f"{n_heads} heads, d_k = {d_k:3}: {count:,} weights")
assert sum(p.numel() for p in MultiHeadAttention(512, 8, 64, 64).parameters()) == 4 * 512**2

# %% [markdown]
# ## The slow way is the truth, the fast way is used
#
# `reference_attention` holds the whole matrix of weights in memory. PyTorch has kernels that never
# do, and the network uses those. Each fast path in this package has a plain one beside it, and a
# test checks that they agree:

# %%
q, k, v = (torch.randn(2, 4, 10, 16) for _ in range(3))
mask = causal.expand(2, -1, -1)
difference = (fused_attention(q, k, v, mask) - reference_attention(q, k, v, mask)).abs().max()
print(f"fused and plain differ by at most {difference:.1e}")
assert difference < 1e-5
