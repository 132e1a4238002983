# %% [markdown]
# # 10. Batching and packing
#
# *Section 5.1*
#
# **The paper's claim.** Pairs of sentences of about the same length are batched together, so that
# little of a batch is padding.
#
# A GPU computes rectangles. Sentences have different lengths. This chapter compares three ways to
# put sentences into rectangles: at random, by length as in the paper, and **packed**, as this
# package does by default. The measure is the **fill**, the part of the positions that holds a
# token.

# %%
import time
from inspect import getsource

import numpy as np
import torch
from matplotlib import pyplot as plt
from torch.utils.flop_counter import FlopCounterMode

from transept import ModelConfig, Transformer
from transept.data.batching.layouts import Pairs, by_length, packed
from transept.data.batching.tiles import first_fit_decreasing, pack
from transept.data.config import BatchConfig
from transept.model.packing import Band, Layout, Tokens, pad_rows, visible

# %% [markdown]
# ## 20,000 lengths
#
# Only the lengths matter here, so they are sampled: a log-normal distribution with a mean of about
# 26 tokens, which is similar to news. The target is about as long as the source.

# %%
chance = np.random.default_rng(1)
sources = chance.lognormal(3.1, 0.6, 20_000).clip(2, 120).astype(np.int32)
targets = (sources * chance.normal(1.0, 0.15, 20_000)).clip(2, 120).astype(np.int32)
pairs = Pairs(np.arange(20_000), sources, targets)
print(f"mean length: source {sources.mean():.1f}, target {targets.mean():.1f} tokens")

# %%
# Figure: The lengths of the source sentences. Few are as long as the longest.
_, axis = plt.subplots(figsize=(7.2, 2.0))
axis.hist(sources, bins=60, color="C0")
axis.set(xlabel="source tokens", ylabel="sentences")

# %% [markdown]
# ## Padded batches
#
# The simplest batch has one sentence per row. Shorter rows are filled up with padding. In random
# order, each row is as wide as the longest of the batch. Sorted by length, the rows of a batch are
# similar. `by_length` is the paper's method: it sorts, cuts when 25,000 positions are reached, and
# shuffles the batches.

# %%
print(getsource(by_length))


# %%
def fill(batches):
    """The part of the positions that holds a token."""
    tokens = sum(batch.n_source_tokens + batch.n_target_tokens for batch in batches)
    return tokens / sum(batch.n_positions for batch in batches)


def shuffle(n, _):
    """A random order."""
    return chance.permutation(n)


rows = 25_000 // 120
random = [side[at : at + rows] for side in (sources, targets) for at in range(0, len(side), rows)]
random_fill = sum(part.sum() for part in random) / sum(part.max() * len(part) for part in random)
sorted_batches = by_length(pairs, BatchConfig(layout="by_length"), shuffle)
shapes = {(b.micro[0].shape.source_width, b.micro[0].shape.target_width) for b in sorted_batches}
print(f"random order: {random_fill:.0%} of the positions hold a token")
print(f"by length:    {fill(sorted_batches):.0%}, {len(shapes)} different widths", end=" ")
print(f"in {len(sorted_batches)} batches")
assert random_fill < 0.5
assert fill(sorted_batches) > 0.8
assert len(shapes) > 10

# %% [markdown]
# By length is much better, and has two costs. The sentences of a batch are all short or all long,
# so a step is less representative of the text. And almost every batch has another shape. A GPU
# works best with one shape, because its whole sequence of kernels (a **CUDA graph**) can then be
# recorded once and replayed.
#
# ## Packing
#
# Packing puts several sentences into one row, a **tile** of 128 positions. It is a bin-packing
# problem, with both sides of a pair in the same tile. The longest pairs go first, each where it
# first fits:

# %%
print(getsource(first_fit_decreasing))

# %% [markdown]
# `pack` does the same for hundreds of thousands of pairs. `packed` distributes the tiles at random
# over batches, which all have the same shape.

# %%
packed_batches = packed(pairs, BatchConfig(), shuffle)
shapes = {(b.micro[0].shape.n_rows, b.micro[0].shape.source_width) for b in packed_batches}
tiles = {f.__name__: f(sources[:2000], targets[:2000], 128) for f in (first_fit_decreasing, pack)}
print(f"packed: {fill(packed_batches):.0%}, shapes {shapes}")
print("tiles for 2,000 pairs:", {name: int(tile.max()) + 1 for name, tile in tiles.items()})
assert len(shapes) == 1
assert fill(packed_batches) > 0.93

# %%
# Figure: The part of the positions that holds a token.
_, axis = plt.subplots(figsize=(7.2, 1.7))
names = "random order", "by length (paper)", "packed (package)"
values = random_fill, fill(sorted_batches), fill(packed_batches)
axis.barh(names, values, color=["C1", "C2", "C0"])
axis.bar_label(axis.containers[0], [f"{value:.0%}" for value in values], padding=4)
axis.set(xlim=(0, 1.1), xlabel="fill")
axis.invert_yaxis()

# %% [markdown]
# ## Attention in a packed row
#
# Embeddings, feed-forward networks and layer normalizations treat each token separately. They do
# not notice that a row has several sentences. Attention must not mix them. A `Layout` stores the
# number of the sentence (`segments`) and the position within it for each slot of a row, and the
# mask of [chapter 2](02_scaled_dot_product_attention.py) compares them.

# %%
print(getsource(Layout))
print(getsource(Tokens))

# %% [markdown]
# Three sentences as a padded batch, and packed into one tile of 12 positions:

# %%
sentences = [[11, 12, 13, 14, 1], [21, 22, 1], [31, 32, 33, 1]]
padded = Tokens.padded(pad_rows(sentences, 0), pad_id=0)
ids, segments, positions = (torch.zeros(1, 12, dtype=torch.long) for _ in range(3))
ids[0] = torch.tensor([token for sentence in sentences for token in sentence])
segments[0] = torch.tensor([1] * 5 + [2] * 3 + [3] * 4)
positions[0] = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3])
tile = Tokens.tiled(ids, segments, positions)
print("padded", tuple(padded.layout.segments.shape), "packed", tuple(tile.layout.segments.shape))

config = ModelConfig(vocab_size=40, n_layers=2, d_model=32, d_ff=64, n_heads=2, dropout=0.0)
torch.manual_seed(0)
model = Transformer(config).eval()
with torch.no_grad():
    by_row = model.encode(padded).states[padded.layout.segments.flatten() > 0]
    by_tile = model.encode(tile).states
print(f"the encoder's output differs by at most {(by_row - by_tile).abs().max():.0e}")
assert torch.allclose(by_row, by_tile, atol=1e-4)

# %%
# Figure: The masks of encoder and decoder for the packed row. No sentence sees another.
_, axes = plt.subplots(1, 2, figsize=(7.2, 2.6))
for axis, name, band in zip(axes, ("encoder", "decoder"), (Band(), Band.causal()), strict=True):
    axis.imshow(visible(tile.layout, tile.layout, band)[0].numpy(), vmin=0, vmax=1.4)
    axis.set(title=name, xlabel="key", ylabel="query", xticks=[], yticks=[])

# %% [markdown]
# ## What it saves
#
# The same 100 pairs, in random order and padded, or packed: the operations of a training step are
# counted, and its time is measured.

# %%
config = ModelConfig(vocab_size=500, n_layers=2, d_model=64, d_ff=256, n_heads=2, dropout=0.0)
model = Transformer(config)
some = pairs[:100]
sides = [[torch.randint(4, 500, (n,)) for n in side] for side in (some.sources, some.targets)]


def packed_tokens(sentences, tile_of):
    """Sentences in the tiles that `pack` assigned."""
    n = int(tile_of.max()) + 1
    ids, segments, positions = (torch.zeros(n, 128, dtype=torch.long) for _ in range(3))
    free = [0] * n
    for number, (row, sentence) in enumerate(zip(tile_of.tolist(), sentences, strict=True), 1):
        slot = slice(free[row], free[row] + len(sentence))
        ids[row, slot], segments[row, slot] = sentence, number
        positions[row, slot] = torch.arange(len(sentence))
        free[row] += len(sentence)
    return Tokens.tiled(ids, segments, positions)


tile_of = pack(some.sources, some.targets, 128)
batches = {
    "padded": [Tokens.padded(pad_rows([s.tolist() for s in side], 0), 0) for side in sides],
    "packed": [packed_tokens(side, tile_of) for side in sides],
}
flops = {}
for name, (source, target) in batches.items():
    begun = time.perf_counter()
    with FlopCounterMode(display=False) as counter:
        model.decode(target, model.encode(source)).sum().backward()
    flops[name] = counter.get_total_flops()
    positions = len(source.ids) + len(target.ids)
    print(f"{name}: {positions:7,} positions, {flops[name] / 1e9:4.1f} GFLOP,", end=" ")
    print(f"{time.perf_counter() - begun:.1f} s")
assert flops["padded"] > 2 * flops["packed"]

# %% [markdown]
# The packed step needs less than half of the operations for the same sentences. On a CPU, where
# shapes may change from step to step, the package also removes the last empty positions
# (`without_padding`).
