# %% [markdown]
# # 3. Each place by itself, words, and where they stand
#
# *Sections 3.3, 3.4 and 3.5*
#
# Attention carries information from place to place. This chapter is about what happens *at* a
# place: a small network, a table of word vectors for input and output, and a signal that tells the
# network the order of the words.

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
# ## Equation (2): the feed-forward network
#
# > FFN(x) = max(0, x W_1 + b_1) W_2 + b_2
#
# It widens each vector from 512 to 2048 numbers, sets the negative ones to zero, and narrows it
# again. Two thirds of an encoder layer's weights are here.

# %%
print(getsource(FeedForward.forward))

# %% [markdown]
# *Position-wise* means: the same function at each place, and no place sees another. Shuffle the
# places, and the results are shuffled in the same way.

# %%
ffn = FeedForward(16, 64, activation="relu", dropout=0.0)
x = torch.randn(6, 16)
order = torch.randperm(6)
assert torch.allclose(ffn(x)[order], ffn(x[order]), atol=1e-6)

zero = (x @ ffn.w_1.weight.T + ffn.w_1.bias < 0).float().mean()
print(f"the ReLU sets {zero:.0%} of the inner numbers to zero")

# %% [markdown]
# ## One table of words
#
# Source and target share a vocabulary, so they can share their vectors. The matrix that turns the
# decoder's last vector into a score for each word is the same table once more. So a word's score is
# the dot product of the decoder's last vector and the word's own vector.

# %%
model = Transformer(ModelConfig(vocab_size=50, n_layers=1, d_model=16, d_ff=32, n_heads=2))
shared = model.source_embedding.weight
print("source is target:    ", shared is model.target_embedding.weight)
print("source is projection:", shared is model.projection.weight)
assert shared is model.target_embedding.weight is model.projection.weight

# %% [markdown]
# On the way in, vectors are multiplied by √d_model:

# %%
print(getsource(Embedding.forward))

# %% [markdown]
# Why? As rows of the output projection, the vectors should be short. Otherwise the first logits
# would be large, and the first softmax would be sure of itself for no reason. So they start with
# standard deviation d_model^-0.5. As inputs, they should be about as large as the position signal
# that is added to them, which is of size one. The factor makes both possible.

# %%
table = Embedding(1000, 512, pad_id=0)
torch.nn.init.normal_(table.weight, std=512**-0.5)
words = table(torch.arange(1, 1000))
places = sinusoids(torch.arange(100), 512)
print(f"root mean square: words {words.square().mean().sqrt():.3f}, places", end=" ")
print(
    f"{places.square().mean().sqrt():.3f}, as projection {table.weight.square().mean().sqrt():.3f}"
)
assert math.isclose(words.square().mean().sqrt().item(), 1, abs_tol=0.02)
assert table(torch.tensor([0])).abs().sum() == 0, "padding is the zero vector"

# %% [markdown]
# ## Where a word stands
#
# Attention does not know about order: without anything else, a Transformer would see a bag of
# words. So each place has its own signal, which is added to the word's vector. The paper's signal
# is made of waves, a sine and a cosine for each wavelength:
#
# > PE(pos, 2i) = sin(pos / 10000^(2i / d_model))
# >
# > PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

# %%
print(getsource(sinusoids))

# %%
encoding = sinusoids(torch.arange(100), 64)
_, (left, right) = plt.subplots(1, 2, width_ratios=(1, 1.2))
left.imshow(encoding.T.numpy(), aspect="auto", cmap="PuOr", vmin=-1, vmax=1)
left.set(xlabel="place in the sentence", ylabel="dimension", title="d_model = 64")
for dimension in (4, 5, 12, 24):
    right.plot(encoding[:, dimension].tolist(), label=f"dimension {dimension}")
right.set(xlabel="place in the sentence", ylim=(-1.1, 1.6), title="some of the waves")
right.legend(frameon=False, ncols=2)

assert torch.equal(encoding[0, ::2], torch.zeros(32).double())
assert torch.equal(encoding[0, 1::2], torch.ones(32).double())

# %% [markdown]
# The dimensions are like the hands of a clock, with wavelengths from 2π to 10000 · 2π. The first
# ones turn quickly and tell neighbours apart. The last ones hardly move over a whole page.
#
# Why waves? Because a step of k places is then the same rotation everywhere: for each pair
# of dimensions, (sin, cos) at pos + k is a fixed 2 × 2 matrix times (sin, cos) at pos. A head can
# learn "three words back" as one linear map. You can see this in the dot product of two places,
# which depends only on their distance:

# %%
products = encoding @ encoding.T
by_distance = [products.diagonal(k) for k in range(60)]
assert all(torch.allclose(d, d[:1].expand_as(d)) for d in by_distance)

_, (left, right) = plt.subplots(1, 2)
left.imshow(products.numpy(), cmap="PuOr", vmin=-32, vmax=32)
left.set(xlabel="place", ylabel="place", title="PE(a) · PE(b)")
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
# Row E of Table 3 learns a table of positions instead (`positions="learned"`) and scores nearly the
# same. The waves need no training and have no maximum length. But that does not mean that a network
# handles places well that it never saw in training.
