# %% [markdown]
# # 3. Feed-forward layers, embeddings and positional encoding
#
# *Sections 3.3, 3.4 and 3.5*
#
# Attention moves information between positions. This chapter covers the parts of the network that
# work on a single position: the **feed-forward network**, the **embedding matrix** for input and
# output, and the **positional encoding**, which gives the network the order of the words.

# %%
import math
from inspect import getsource

import torch
from matplotlib import pyplot as plt

from transept import ModelConfig, Transformer
from transept.model.layers import Embedding, FeedForward
from transept.model.positions import sinusoids

torch.manual_seed(0)

# %% [markdown]
# ## Equation (2): the position-wise feed-forward network
#
# > FFN(x) = max(0, x W_1 + b_1) W_2 + b_2
#
# It expands each vector from 512 to 2048 numbers, sets negative ones to zero (ReLU), and projects
# it back to 512. It has two thirds of the weights of an encoder layer.

# %%
print(getsource(FeedForward.forward))

# %% [markdown]
# *Position-wise* means that the same function is applied at each position, and that positions do
# not exchange information. If you shuffle the positions, the results are shuffled in the same way.

# %%
ffn = FeedForward(16, 64, activation="relu", dropout=0.0)
x = torch.randn(6, 16)
order = torch.randperm(6)
assert torch.allclose(ffn(x)[order], ffn(x[order]), atol=1e-6)

zero = (x @ ffn.w_1.weight.T + ffn.w_1.bias < 0).float().mean()
print(f"the ReLU sets {zero:.0%} of the inner numbers to zero")

# %% [markdown]
# ## One embedding matrix
#
# Source and target share a vocabulary, so they can share their embeddings. The output projection,
# which turns the decoder's last vector into a logit for each word, uses the same **embedding
# matrix**. The logit of a word is the dot product of the decoder's last vector and the word's
# embedding.

# %%
model = Transformer(ModelConfig(vocab_size=50, n_layers=1, d_model=16, d_ff=32, n_heads=2))
shared = model.source_embedding.weight
print("source is target:    ", shared is model.target_embedding.weight)
print("source is projection:", shared is model.projection.weight)
assert shared is model.target_embedding.weight is model.projection.weight

# %% [markdown]
# As input, embeddings are multiplied by √d_model:

# %%
print(getsource(Embedding.forward))

# %% [markdown]
# Why? As rows of the output projection, the embeddings should be small. Otherwise the first logits
# would be large, and the untrained model would be confident without reason. So they start with
# standard deviation d_model^-0.5. As inputs, they should be about as large as the positional
# encoding that is added to them, which is of order one. The factor makes both possible.

# %%
table = Embedding(1000, 512, pad_id=0)
torch.nn.init.normal_(table.weight, std=512**-0.5)
words = table(torch.arange(1, 1000))
places = sinusoids(torch.arange(100), 512)
print(f"root mean square: embeddings {words.square().mean().sqrt():.3f}, positions", end=" ")
print(
    f"{places.square().mean().sqrt():.3f}, as projection {table.weight.square().mean().sqrt():.3f}"
)
assert math.isclose(words.square().mean().sqrt().item(), 1, abs_tol=0.02)
assert table(torch.tensor([0])).abs().sum() == 0, "padding is the zero vector"

# %% [markdown]
# ## Positional encoding
#
# Attention does not depend on the order of its inputs: without a positional encoding, a Transformer
# would see a bag of words. The **positional encoding** is a vector for each position, which is
# added to the embedding. The paper uses sinusoids, a sine and a cosine for each wavelength:
#
# > PE(pos, 2i) = sin(pos / 10000^(2i / d_model))
# >
# > PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

# %%
print(getsource(sinusoids))

# %%
encoding = sinusoids(torch.arange(100), 64)
# Figure: Left: each column is the encoding of a position. Right: four of the dimensions.
_, (left, right) = plt.subplots(1, 2, width_ratios=(1, 1.2))
left.imshow(encoding.T.numpy(), aspect="auto", cmap="PuOr", vmin=-1, vmax=1)
left.set(xlabel="position", ylabel="dimension", title="d_model = 64")
for dimension in (4, 5, 12, 24):
    right.plot(encoding[:, dimension].tolist(), label=f"dimension {dimension}")
right.set(xlabel="position", ylim=(-1.1, 1.6), title="some of the sinusoids")
right.legend(frameon=False, ncols=2)

assert torch.equal(encoding[0, ::2], torch.zeros(32).double())
assert torch.equal(encoding[0, 1::2], torch.ones(32).double())

# %% [markdown]
# The dimensions are like the hands of a clock, with wavelengths from 2π to 10000 · 2π. The first
# dimensions change quickly and distinguish neighbouring positions. The last ones hardly change
# within a page of text.
#
# Why sinusoids? A shift by k positions is the same rotation everywhere: for each pair of
# dimensions, (sin, cos) at pos + k is a fixed 2 × 2 matrix times (sin, cos) at pos. A head can
# learn "three words back" as one linear map. The dot product of two encodings shows this: it
# depends only on their distance.

# %%
products = encoding @ encoding.T
by_distance = [products.diagonal(k) for k in range(60)]
assert all(torch.allclose(d, d[:1].expand_as(d)) for d in by_distance)

# Figure: The dot product of two encodings depends only on the distance of their positions.
_, (left, right) = plt.subplots(1, 2)
left.imshow(products.numpy(), cmap="PuOr", vmin=-32, vmax=32)
left.set(xlabel="position a", ylabel="position b", title="PE(a) · PE(b)")
right.plot([d[0].item() for d in by_distance], color="tab:purple")
right.set(xlabel="distance |a − b|", title="depends on the distance alone")

# %% [markdown]
# The rotation itself, for three words back:

# %%
step = 3
angle = step / 10_000 ** (torch.arange(0, 64, 2).double() / 64)
sin, cos = encoding[:, ::2], encoding[:, 1::2]
moved_sin = sin * angle.cos() - cos * angle.sin()
assert torch.allclose(moved_sin[step:], sin[:-step], atol=1e-12)
print(f"PE(pos − {step}) = rotation · PE(pos), exact to", end=" ")
print(f"{(moved_sin[step:] - sin[:-step]).abs().max():.0e}")

# %% [markdown]
# Row E of Table 3 uses learned positional embeddings instead (`positions="learned"`) and scores
# nearly the same. Sinusoids need no training and have no maximum length. That does not mean that a
# network handles positions well that never occurred in training.
