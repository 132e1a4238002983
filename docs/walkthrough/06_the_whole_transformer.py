# %% [markdown]
# # 6. The whole Transformer
#
# *Section 3, and Figure 1*
#
# The previous chapters had the parts: attention, feed-forward networks, embeddings, positional
# encoding. This chapter assembles them, follows one sentence through all of them with its shapes,
# and counts the parameters.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept import ModelConfig, Transformer
from transept.text.tokenizer import EOS_ID

# %% [markdown]
# ## The source
#
# `__init__` creates the parts of the paper's Figure 1. `encode` is its left half, `decoder_states`
# its right half, and `project` the linear transformation at the top. `_tie` makes the projection
# use the embedding matrix. The network has no softmax: the loss and the search apply it.

# %%
print(getsource(Transformer))

# %% [markdown]
# `ids` and logits of a batch are padded rectangles. Between them, the tokens of all sentences are
# one long list: `N` in the signatures is the number of tokens of the batch, not of a sentence. Only
# attention has to know which tokens belong to one sentence ([chapter
# 10](10_batching_and_packing.py)).
#
# ## One sentence, with its shapes
#
# A hook prints the output of each part while the bundled model translates. It has eight encoder
# layers and three decoder layers, 256 numbers per vector, and 8,000 tokens. The first layer of each
# stack is shown with its parts. Source and target share one embedding and one table of positions,
# so each of these names appears twice.

# %%
translator = transept.load("en-de", engine="native")
model, tokenizer = translator.model, translator.source_tokenizer
source, target = "The old man has not seen the dog.", "Der alte Mann hat den Hund nicht gesehen."
source_ids, target_ids = (
    torch.tensor([[*tokenizer.encode(text), EOS_ID]]) for text in (source, target)
)
print(f"{tuple(source_ids.shape)!s:13} source_ids")
print(f"{tuple(target_ids.shape)!s:13} target_ids")
shapes = []


def show(name):
    """A hook that prints the shape of a module's output."""

    def hook(_, __, out):
        shapes.append(tuple(out.shape))
        print(f"{shapes[-1]!s:13} {name}")

    return hook


hooks = [
    module.register_forward_hook(show(name))
    for name, module in model.named_modules()
    if name.count(".") < 3 or (".0." in name and name.count(".") == 3)
    if name and not name.endswith(("layers", "dropout", "residuals", "norm", "feed_forward.w_1"))
]
with torch.no_grad():
    logits = model(source_ids, target_ids)
for hook in hooks:
    hook.remove()
print(f"{tuple(logits.shape)!s:13} logits")
assert shapes[-1] == (11, 8000)
assert logits.shape == (1, 11, 8000)

# %% [markdown]
# All positions of the sentence pass through each part at the same time. The width stays 256 from
# the embedding to the last layer. This **residual stream** is what the sub-layers add to.
#
# ## The probability of a translation
#
# The logits give the probability of each token, and their product is that of the translation:
#
# $$\log P(y \mid x) = \sum_i \log p(y_i \mid y_{<i}, x)$$
#
# During training, the correct previous tokens are the decoder's input (**teacher forcing**). One
# pass over the sentence is therefore enough:

# %%
log_p = logits[0].log_softmax(-1).gather(1, target_ids[0, :, None]).squeeze(1)
print(f"log P = {log_p.sum():.3f}, P = {log_p.sum().exp():.3f}")
scored = translator.score(source, target).log_probability
print(f"by `score` of the package: {scored:.3f}")
assert abs(log_p.sum().item() - scored) < 1e-2

# %% [markdown]
# ## The number of parameters
#
# The weights can be counted by hand. Attention has four matrices and no biases. The feed-forward
# network has two matrices and two biases. A layer normalization has a scale and a shift. The
# embedding matrix counts once:
#
# $$V d + N \, (4 d^2 + 2 d \, d_{ff} + d_{ff} + d + 4 d) + N \, (8 d^2 + 2 d \, d_{ff} + d_{ff} + d
# + 6 d)$$

# %%
sizes = {"base": (37_000, 512, 2048), "big": (37_000, 1024, 4096)}
counted = {}
for name, (v, d, ff) in sizes.items():
    with torch.device("meta"):  # the shapes, without the memory
        network = Transformer(ModelConfig.preset(name, vocab_size=v))
    feed_forward = 2 * d * ff + ff + d
    by_hand = v * d + 6 * (4 * d**2 + feed_forward + 4 * d) + 6 * (8 * d**2 + feed_forward + 6 * d)
    print(f"{name}: {network.n_parameters():,} parameters; by hand {by_hand:,}")
    assert network.n_parameters() == by_hand
    counted[name] = network
counted["en-de"] = model

# %% [markdown]
# The paper reports 65 million for base and 213 million for big, with a vocabulary of "about 37,000"
# tokens.

# %%
parts = {"embeddings": "embedding", "attention": "attention.", "feed-forward": "feed_forward"}
shares = {
    part: [
        sum(p.numel() for n, p in network.named_parameters() if key in n) / network.n_parameters()
        for network in counted.values()
    ]
    for part, key in parts.items()
}
assert all(sum(column) > 0.99 for column in zip(*shares.values(), strict=True))
for part, values in shares.items():
    print(f"{part:14}", *(f"{value:5.0%}" for value in values))

# %%
# Figure: Where the parameters are: embeddings, attention, feed-forward networks.
_, axis = plt.subplots(figsize=(7.2, 2.0))
left = [0.0] * 3
labels = [f"{name}, {net.n_parameters() / 1e6:.0f} million" for name, net in counted.items()]
for part, values in shares.items():
    axis.barh(labels, values, left=left, label=part)
    left = [a + b for a, b in zip(left, values, strict=True)]
axis.set(xlim=(0, 1), xlabel="share of the parameters")
axis.invert_yaxis()
axis.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
