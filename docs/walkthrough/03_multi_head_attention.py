# %% [markdown]
# # 3. Multi-head attention
#
# *Sections 3.2.2 and 3.2.3*
#
# **The paper's claim.** One attention blends everything that a position reads into one mean. It is
# better to attend several times in parallel, each time in a smaller space. Each **head** can then
# read something else: the previous word, the verb, the subject. The heads together cost as much as
# one attention of full width.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept.model.attention import MultiHeadAttention, record_attention, reference_attention
from transept.model.packing import Band, Tokens, visible
from transept.text.tokenizer import EOS_ID

# %% [markdown]
# ## The equations
#
# Each head $i$ has three matrices, which project the vectors of the sentence to its queries, keys
# and values. The results of all heads are concatenated, and $W^O$ projects them back to
# $d_{\text{model}}$ numbers:
#
# $$\text{head}_i = \text{Attention}(Q W_i^Q, K W_i^K, V W_i^V)$$
#
# $$\text{MultiHead}(Q, K, V) = \text{Concat}(\text{head}_1, \dots, \text{head}_h) \, W^O$$
#
# In self-attention, $Q = K = V = X$, the vectors of the sentence. In encoder-decoder attention, $Q$
# comes from the decoder, and $K = V$ are the encoder's output, the **memory**. The matrices have
# these sizes:
#
# | matrix | rows | columns | base |
# |---|---|---|---|
# | $W_i^Q$, $W_i^K$ | $d_{\text{model}}$ | $d_k$ | 512 × 64 |
# | $W_i^V$ | $d_{\text{model}}$ | $d_v$ | 512 × 64 |
# | $W^O$ | $h \cdot d_v$ | $d_{\text{model}}$ | 512 × 512 |
#
# ## The source
#
# The matrices of all heads are stacked in one, `w_qkv`, so that self-attention needs a single
# matrix multiplication. `_heads` cuts the result into heads. `layout.to_rows` turns the list of all
# tokens into sentences, and `to_flat` turns it back. For a padded batch both are reshapes. `Blocks`
# occur only in restricted attention ([chapter 7](07_why_self_attention.py)).

# %%
print(getsource(MultiHeadAttention))

# %% [markdown]
# ## One sentence, by hand
#
# The first encoder layer of the bundled model has four heads of width 64. The input is the sum of
# embedding and positional encoding. Each head is computed with its own matrices, exactly as in the
# equations:

# %%
translator = transept.load("en-de", engine="native")
model, tokenizer = translator.model, translator.source_tokenizer
ids = [*tokenizer.encode("The old man has not seen the dog."), EOS_ID]
words = [piece.strip("▁") for piece in tokenizer.pieces_of(ids)]
tokens = Tokens.padded(torch.tensor([ids]), pad_id=0)

attention = model.encoder.layers[0].self_attention
mask = visible(tokens.layout, tokens.layout, Band())
with torch.no_grad():
    x = model.source_embedding(tokens.ids) + model.source_positions(tokens.layout)
    w_q, w_k, w_v = attention.split(attention.w_qkv.weight.T)
    w_o = attention.w_o.weight.T
    heads = []
    for i in range(4):
        columns = slice(64 * i, 64 * (i + 1))
        q, k, v = x @ w_q[:, columns], x @ w_k[:, columns], x @ w_v[:, columns]
        heads.append(reference_attention(q[None, None], k[None, None], v[None, None], mask)[0, 0])
    by_hand = torch.cat(heads, dim=1) @ w_o
    package = attention(x, None, tokens.layout, tokens.layout, mask)

shapes = {"X": x, "W_i^Q": w_q[:, columns], "Q W_i^Q": q, "head_i": heads[0]}
shapes |= {"Concat": torch.cat(heads, dim=1), "W^O": w_o, "MultiHead": by_hand}
for name, tensor in shapes.items():
    print(f"{name:10} {tuple(tensor.shape)}")
print(f"by hand and by the package: difference {(by_hand - package).abs().max():.0e}")
assert by_hand.shape == x.shape == (10, 256)
assert torch.allclose(by_hand, package, atol=1e-3)

# %% [markdown]
# ## What the heads read
#
# Training does not assign roles to heads. These are the four heads of the first layer and of the
# last one:

# %%
with torch.no_grad(), record_attention(model) as recorded:
    model.encode(torch.tensor([ids]))
shown = {f"layer {n + 1}": recorded[f"encoder.layers.{n}.self_attention"][0] for n in (0, 7)}
entropy = {name: -(w * w.clamp(min=1e-9).log()).sum(-1).mean(-1) for name, w in shown.items()}
for name, values in entropy.items():
    print(name, "entropy of each head's weights:", [round(value, 2) for value in values.tolist()])
apart = (shown["layer 1"][:, None] - shown["layer 1"][None]).abs().sum(-1).mean(-1)
assert apart[~torch.eye(4, dtype=torch.bool)].min() > 0.1, "no two heads of layer 1 are alike"

# %%
# Figure: Four heads of the first and of the last encoder layer. Rows are queries, columns keys.
_, axes = plt.subplots(2, 4, figsize=(7.2, 4.3), sharex=True, sharey=True)
for row, (name, heads_) in zip(axes, shown.items(), strict=True):
    for i, (axis, head) in enumerate(zip(row, heads_, strict=True), start=1):
        axis.imshow(head.numpy(), vmin=0, vmax=1)
        axis.set_title(f"{name}, head {i}", fontsize=8)
        axis.set_xticks(range(10), words, rotation=90, fontsize=7)
        axis.set_yticks(range(10), words, fontsize=7)

# %% [markdown]
# A head with a low **entropy** reads one word, a head with a high entropy reads many. Some heads
# give most of their weight to the end symbol. That is a way to read nothing:
# the weights must sum to 1, so a head without a task needs a place to put them.
# [Chapter 18](18_inside_a_trained_model.py) looks at more heads.
#
# ## The cost
#
# With $d_k = d_v = d_{\text{model}} / h$, eight heads have as many weights as one wide head, and
# need as many multiplications. $d_k$ and $d_v$ can also be chosen freely, as rows (A) and (B) of
# [Table 3](16_table_3.py) require. The package has no biases here: the paper names only matrices.

# %%
for n_heads, d_k, d_v in ((8, 64, 64), (1, 512, 512), (8, 16, 64)):
    count = sum(p.numel() for p in MultiHeadAttention(512, n_heads, d_k, d_v).parameters())
    print(f"h = {n_heads}, d_k = {d_k:3}, d_v = {d_v:3}: {count:9,} weights")
    assert count == 512 * n_heads * (2 * d_k + d_v) + n_heads * d_v * 512
