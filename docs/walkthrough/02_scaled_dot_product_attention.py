# %% [markdown]
# # 2. Scaled dot-product attention
#
# *Section 3.2.1*
#
# **The paper's claim.** A dot product is enough to decide how much one word should read from
# another. It is cheaper than the small networks that earlier models used for this purpose, because
# all dot products of a sentence are one matrix multiplication. For wide vectors it must be scaled.
#
# Attention is a soft lookup. Each position has three vectors. The **query** describes what the
# position looks for, the **key** what it offers, and the **value** is its content. The dot product
# of a query and a key is a score. A softmax turns the scores of a query into weights that sum to 1.
# The result is the weighted mean of the values.

# %%
import math
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept.model.attention import (
    attention_weights,
    fused_attention,
    record_attention,
    reference_attention,
)
from transept.model.packing import Band, Tokens, pad_rows, visible
from transept.text.tokenizer import EOS_ID

torch.manual_seed(0)

# %% [markdown]
# ## Equation (1)
#
# Queries, keys and values are the rows of three matrices. $Q$ has one row for each of $T$ queries,
# $K$ and $V$ have one for each of $S$ keys:
#
# $$\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^{\text{T}}}{\sqrt{d_k}}\right) V$$
#
# The package has two short functions for it. The first computes the weights, the second applies
# them. The letters in the signatures are shapes, which the tests check: B sentences, H heads, T
# queries, S keys.

# %%
print(getsource(attention_weights))
print(getsource(reference_attention))

# %% [markdown]
# An example that can be computed by hand has one query and two keys. The first key has the
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
# ## One sentence
#
# These are the weights of a head in the third encoder layer of the bundled model. The head learned
# to look at the previous word. The dot product can do that because each vector also contains its
# position ([chapter 5](05_positional_encoding.py)).

# %%
translator = transept.load("en-de", engine="native")
model, tokenizer = translator.model, translator.source_tokenizer
sentence = "The old man has not seen the dog."
ids = [*tokenizer.encode(sentence), EOS_ID]
words = [piece.strip("▁") for piece in tokenizer.pieces_of(ids)]
with torch.no_grad(), record_attention(model) as recorded:
    model.encode(torch.tensor([ids]))

all_heads = recorded["encoder.layers.2.self_attention"]
print("weights of the layer", tuple(all_heads.shape), "1 sentence, 4 heads, 10 queries, 10 keys")
previous = all_heads[0].diagonal(-1, -2, -1).mean(-1)
head = int(previous.argmax())
print(f"head {head + 1} gives {previous[head]:.0%} of its weight to the previous word")
assert all_heads.shape == (1, 4, 10, 10)
assert torch.allclose(all_heads.sum(-1), torch.ones(1, 4, 10), atol=1e-4)
assert previous[head] > 0.5

# %%
# Figure: A head of the bundled model. A stronger colour is a larger weight. Each row sums to 1.
_, axis = plt.subplots(figsize=(7.2, 3.4))
axis.imshow(all_heads[0, head].numpy(), vmin=0, vmax=1)
axis.set_xticks(range(10), words, rotation=90)
axis.set_yticks(range(10), words)
axis.set(xlabel="key", ylabel="query", title=f"encoder layer 3, head {head + 1}")

# %% [markdown]
# ## Why divide by $\sqrt{d_k}$
#
# Take queries and keys whose components are independent, with mean 0 and variance 1. Their dot
# product is a sum of $d_k$ terms:
#
# $$\text{Var}(q \cdot k) = \sum_{i=1}^{d_k} \text{Var}(q_i k_i) = d_k$$
#
# The larger $d_k$, the larger the scores. A softmax of large scores saturates: one weight is close
# to 1, and the gradient almost vanishes. The division keeps the standard deviation at 1 for every
# $d_k$.

# %%
widths = [4, 16, 64, 256, 1024]
spread, largest, gradient = ({"plain": [], "scaled": []} for _ in range(3))
for d_k in widths:
    scores = torch.randn(500, 1, d_k) @ torch.randn(500, d_k, 10)
    for name, divided in (("plain", scores), ("scaled", scores / math.sqrt(d_k))):
        p = divided.softmax(-1)
        spread[name].append(divided.std().item())
        largest[name].append(p.amax(-1).mean().item())
        # The derivative of a weight by its own score is p (1 − p).
        gradient[name].append((p * (1 - p)).mean().item())
assert all(0.9 < s < 1.1 for s in spread["scaled"])
assert spread["plain"][-1] > 25
assert gradient["plain"][-1] < 0.2 * gradient["scaled"][-1]

# %%
# Figure: Without the division, scores grow with the width, one weight dominates, learning stops.
_, axes = plt.subplots(1, 3, figsize=(7.2, 2.6))
titles = ("deviation of the scores", "largest of ten weights", "gradient of a weight")
for axis, title, values in zip(axes, titles, (spread, largest, gradient), strict=True):
    axis.semilogx(widths, values["plain"], "o-", color="C1", label="q · k")
    axis.semilogx(widths, values["scaled"], "o-", color="C0", label="q · k / √d_k")
    axis.set(xlabel="d_k", title=title, ylim=(0, None))
axes[0].legend()

# %% [markdown]
# ## Masks
#
# A mask defines which keys a query may attend to. Scores of other keys become $-\infty$ before the
# softmax, so their weight is exactly zero. The network has three kinds of attention (section
# 3.2.3), and each has its mask:
#
# - encoder self-attention: all words of the sentence, but not the padding;
# - decoder self-attention: only the position itself and earlier ones (**causal mask**);
# - encoder-decoder attention: all words of the source.

# %%
print(getsource(visible))

# %% [markdown]
# A `Band` limits the distance. Two sentences of five and three tokens form a padded batch:

# %%
layout = Tokens.padded(pad_rows([[4, 5, 6, 7, 1], [8, 9, 1]], 0), pad_id=0).layout
encoder, decoder = visible(layout, layout, Band()), visible(layout, layout, Band.causal())
print("mask", tuple(encoder.shape), "2 sentences, 5 queries, 5 keys")
assert not decoder.triu(1)[:, :3].any(), "no query attends to a later key"
assert not encoder[1, :3, 3:].any(), "no query attends to padding"

# %%
# Figure: A filled square: the query (row) may attend to the key (column).
_, axes = plt.subplots(1, 4, figsize=(7.2, 2.3))
names = ("encoder, 5 tokens", "encoder, 3 tokens", "decoder, 5 tokens", "decoder, 3 tokens")
for axis, name, mask in zip(axes, names, (*encoder, *decoder), strict=True):
    axis.imshow(mask.numpy(), vmin=0, vmax=1.4)
    axis.set_title(name, fontsize=8)
    axis.set(xticks=[], yticks=[])

# %% [markdown]
# (The last two rows of a shorter sentence are padding. As a query, padding attends to something,
# because a softmax over no scores is NaN. Its result is never used.)
#
# ## The fast implementation
#
# `reference_attention` stores the whole matrix of weights in memory. PyTorch has kernels that do
# not, and the network uses those. Each fast implementation in this package has a reference, and a
# test checks that the two agree:

# %%
print(getsource(fused_attention))

# %%
q, k, v = torch.randn(3, 2, 4, 5, 16)
difference = (fused_attention(q, k, v, decoder) - reference_attention(q, k, v, decoder)).abs().max()
print(f"fused and reference differ by at most {difference:.0e}")
assert difference < 1e-5
