# %% [markdown]
# # 5. Positional encoding
#
# *Section 3.5*
#
# **The paper's claim.** Attention does not know the order of its inputs, so the order must be part
# of the inputs. A fixed pattern of sines and cosines, added to the embeddings, is enough. Learned
# vectors for each position work equally well, but a pattern continues beyond the longest training
# sentence.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt

import transept
from transept.model.packing import Tokens
from transept.model.positions import LearnedPositions, SinusoidalPositions, sinusoids
from transept.text.tokenizer import EOS_ID

translator = transept.load("en-de", engine="native")
model, tokenizer = translator.model, translator.source_tokenizer

# %% [markdown]
# ## A bag of words
#
# *The dog sees the man* and *the man sees the dog* have the same tokens. Without a positional
# encoding, the encoder returns the same vectors for both, in another order. The decoder cannot
# distinguish the sentences. With a positional encoding, the vectors differ:

# %%
sentences = "the dog sees the man", "the man sees the dog"
one, other = (torch.tensor(tokenizer.encode(text)) for text in sentences)
where = [other.tolist().index(token) for token in one.tolist()]  # the same token in the other one
print(*tokenizer.pieces_of(one.tolist()), "|", *tokenizer.pieces_of(other.tolist()))


def encode(ids, with_positions):
    """The encoder's output for one sentence."""
    tokens = Tokens.padded(ids[None], pad_id=0)
    x = model.source_embedding(tokens.ids)
    if with_positions:
        x = x + model.source_positions(tokens.layout)
    with torch.no_grad():
        return model.encoder(x, tokens.layout)


changes = {}
for with_positions in (False, True):
    difference = encode(one, with_positions) - encode(other, with_positions)[where]
    changes[with_positions] = difference.abs().mean().item()
    print(
        f"positional encoding {with_positions!s:5}: mean difference {changes[with_positions]:.4f}"
    )
assert changes[False] < 1e-4
assert changes[True] > 0.1

# %% [markdown]
# ## Sinusoids
#
# Each position has a vector of $d_{\text{model}}$ numbers. Dimensions $2i$ and $2i + 1$ are a sine
# and a cosine of the same frequency:
#
# $$\text{PE}_{(\text{pos},\, 2i)} =
# \sin\left(\frac{\text{pos}}{10000^{2i / d_{\text{model}}}}\right)$$
#
# $$\text{PE}_{(\text{pos},\, 2i+1)} =
# \cos\left(\frac{\text{pos}}{10000^{2i / d_{\text{model}}}}\right)$$
#
# The wavelengths grow from $2\pi$ to $10000 \cdot 2\pi$. The pairs are like the hands of a clock.
# The first ones are fast and distinguish neighbours. The last ones hardly move within a page.

# %%
print(getsource(sinusoids))
print(getsource(SinusoidalPositions))

# %%
encoding = sinusoids(torch.arange(100), 64)
ids = torch.tensor([[*tokenizer.encode("The old man has not seen the dog."), EOS_ID]])
tokens = Tokens.padded(ids, pad_id=0)
print("one sentence: embeddings", tuple(model.source_embedding(tokens.ids).shape), end=" ")
print("+ positional encoding", tuple(model.source_positions(tokens.layout).shape))
assert torch.equal(encoding[0, ::2], torch.zeros(32).double())
assert torch.equal(encoding[0, 1::2], torch.ones(32).double())

# %%
# Figure: Left: each column is the encoding of a position. Right: four of the dimensions.
_, (left, right) = plt.subplots(1, 2, width_ratios=(1, 1.2))
left.imshow(encoding.T.numpy(), aspect="auto", cmap="PuOr", vmin=-1, vmax=1)
left.set(xlabel="position", ylabel="dimension", title="d_model = 64")
for dimension in (4, 5, 12, 24):
    right.plot(encoding[:, dimension].tolist(), label=f"dimension {dimension}")
right.set(xlabel="position", ylim=(-1.1, 1.6), title="some of the sinusoids")
right.legend(ncols=2)

# %% [markdown]
# ## Why sinusoids
#
# A shift by $k$ positions is a rotation, the same one everywhere. With
# $\omega_i = 10000^{-2i / d_{\text{model}}}$:
#
# $$\sin(\omega_i (\text{pos} + k)) = \sin(\omega_i \text{pos}) \cos(\omega_i k)
# + \cos(\omega_i \text{pos}) \sin(\omega_i k)$$
#
# A head can therefore learn "three words back" as one linear map. The code computes the encoding of
# `pos − 3` from that of `pos`:

# %%
step = 3
angle = step / 10_000 ** (torch.arange(0, 64, 2).double() / 64)
sin, cos = encoding[:, ::2], encoding[:, 1::2]
moved = sin * angle.cos() - cos * angle.sin()
print(f"largest error of the rotation: {(moved[step:] - sin[:-step]).abs().max():.0e}")
assert torch.allclose(moved[step:], sin[:-step], atol=1e-12)

# %% [markdown]
# As a consequence, the dot product of two encodings depends only on their distance:

# %%
products = encoding @ encoding.T
by_distance = [products.diagonal(k) for k in range(60)]
assert all(torch.allclose(d, d[:1].expand_as(d)) for d in by_distance)

# %%
# Figure: The dot product of two encodings depends only on the distance of their positions.
_, (left, right) = plt.subplots(1, 2)
left.imshow(products.numpy(), cmap="PuOr", vmin=-32, vmax=32)
left.set(xlabel="position a", ylabel="position b", title="PE(a) · PE(b)")
right.plot([d[0].item() for d in by_distance])
right.set(xlabel="distance |a − b|", title="depends on the distance alone")

# %% [markdown]
# ## Learned positions
#
# Row (E) of [Table 3](16_table_3.py) learns a vector for each position instead and scores nearly
# the same. It has a maximum length:

# %%
print(getsource(LearnedPositions))

# %% [markdown]
# Sinusoids have no maximum. That does not mean that a trained network understands positions that
# never occurred in training. The package therefore splits sentences that are longer than those of
# the training.
#
# Later models encode *relative* positions inside the attention, for example by rotating queries and
# keys (RoPE), which is the rotation above in another place.
