# %% [markdown]
# # 4. Feed-forward network, embeddings and softmax
#
# *Sections 3.3 and 3.4*
#
# **The paper's claim.** Attention moves information between positions. A small network, the same at
# every position, then processes it. One embedding matrix is enough for three purposes: to read
# source tokens, to read target tokens, and to write target tokens.

# %%
import math
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept.model.layers import Embedding, FeedForward
from transept.model.positions import sinusoids
from transept.text.tokenizer import EOS_ID

translator = transept.load("en-de", engine="native")
model, tokenizer = translator.model, translator.source_tokenizer
source, target = "The old man has not seen the dog.", "Der alte Mann hat den Hund nicht gesehen."
source_ids, target_ids = (
    torch.tensor([[*tokenizer.encode(text), EOS_ID]]) for text in (source, target)
)

# %% [markdown]
# ## Equation (2): the position-wise feed-forward network
#
# $$\text{FFN}(x) = \max(0, x W_1 + b_1) \, W_2 + b_2$$
#
# $W_1$ expands a vector from $d_{\text{model}} = 512$ to $d_{ff} = 2048$ numbers. The **ReLU** sets
# negative ones to zero. $W_2$ projects the result back.

# %%
print(getsource(FeedForward))

# %% [markdown]
# Two thirds of the weights of an encoder layer are here. *Position-wise* means that positions do
# not exchange information: if you shuffle them, the results are shuffled in the same way.

# %%
layer = model.encoder.layers[0]
ffn, attention = (
    sum(p.numel() for p in part.parameters()) for part in (layer.feed_forward, layer.self_attention)
)
print(f"feed-forward network {ffn:,} parameters, self-attention {attention:,}")
x, order = torch.randn(10, 256), torch.randperm(10)
with torch.no_grad():
    assert torch.allclose(layer.feed_forward(x)[order], layer.feed_forward(x[order]), atol=1e-4)
assert 1.9 < ffn / attention < 2.1

# %% [markdown]
# Which of the inner numbers survive the ReLU? In an untrained network half of them are positive. In
# the trained one most are zero, so each position uses only a few rows of $W_2$. Those rows can be
# read as memories, and $W_1$ decides which of them fit the input.

# %%
active = []


def count(module, inputs, _):
    """Store how many of the inner numbers are positive."""
    inner = inputs[0] @ module.w_1.weight.T + module.w_1.bias
    active.append((inner > 0).float().mean().item())


hooks = [layer.feed_forward.register_forward_hook(count) for layer in model.encoder.layers]
with torch.no_grad():
    states = model.encode(source_ids).states
for hook in hooks:
    hook.remove()
print("shapes: (10, 256) → (10, 1024) → (10, 256)")
print("active, by layer:", [f"{part:.0%}" for part in active])
assert states.shape == (10, 256)
assert max(active) < 0.25

# %%
# Figure: The part of the 1,024 inner numbers that is not zero, in each encoder layer.
_, axis = plt.subplots(figsize=(7.2, 2.2))
axis.bar(range(1, 9), active)
axis.axhline(0.5, color="C1", linestyle="--", label="untrained")
axis.set(xlabel="encoder layer", ylabel="not zero", ylim=(0, 0.6))
axis.legend()

# %% [markdown]
# ## One embedding matrix
#
# Source and target share a vocabulary, so they can share the **embedding matrix** $E$, which has a
# row of $d_{\text{model}}$ numbers for each token. The decoder uses the same matrix once more, as
# the linear transformation before the **softmax**. The logit of a token is therefore the dot
# product of its embedding and the decoder's state $s$:
#
# $$p(y_i = w \mid y_{<i}, x) = \frac{\exp(s_i \cdot E_w)}{\sum_v \exp(s_i \cdot E_v)}$$

# %%
shared = model.source_embedding.weight
assert shared is model.target_embedding.weight is model.projection.weight
with torch.no_grad():
    s = model.decoder_states(target_ids, model.encode(source_ids))
    logits = s @ shared.T
    assert torch.allclose(logits, model(source_ids, target_ids)[0], atol=1e-3)
print("states", tuple(s.shape), "times embeddings", tuple(shared.T.shape), "=", tuple(logits.shape))

after = tokenizer.pieces_of(target_ids[0].tolist()).index("▁nicht")
likely = logits[after].softmax(-1).topk(8)
names = tokenizer.pieces_of(likely.indices.tolist())
print("after “Der alte Mann hat den Hund …”:", *names)
assert names[0] == "▁nicht"

# %%
# Figure: The most probable tokens after "Der alte Mann hat den Hund". The axis is logarithmic.
_, axis = plt.subplots(figsize=(7.2, 2.2))
axis.bar(range(8), likely.values.tolist())
axis.set_yscale("log")
axis.set_xticks(range(8), [name.replace("▁", "") for name in names])
axis.set(ylabel="probability")

# %% [markdown]
# ## The factor $\sqrt{d_{\text{model}}}$
#
# As inputs, embeddings are multiplied by $\sqrt{d_{\text{model}}}$:

# %%
print(getsource(Embedding))

# %% [markdown]
# Why? As rows of the output projection, the embeddings should be small. Otherwise the first logits
# would be large, and the untrained network would be confident without reason. So they start with
# standard deviation $d_{\text{model}}^{-0.5}$. As inputs, they should be about as large as the
# positional encoding that is added to them, which is of order one. The factor makes both possible.

# %%
embedding = Embedding(1000, 512, pad_id=0)
torch.nn.init.normal_(embedding.weight, std=512**-0.5)
sizes = {
    "row of the projection": embedding.weight,
    "embedding as input": embedding(torch.arange(1, 1000)),
    "positional encoding": sinusoids(torch.arange(100), 512),
}
for name, vectors in sizes.items():
    print(f"{name:22} root mean square {vectors.square().mean().sqrt():.3f}")
assert math.isclose(sizes["embedding as input"].square().mean().sqrt().item(), 1, abs_tol=0.02)
assert embedding(torch.tensor([0])).abs().sum() == 0, "padding is the zero vector"
