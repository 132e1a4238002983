# %% [markdown]
# # 7. Why self-attention: complexity and path length
#
# *Section 4 and Table 1*
#
# **The paper's claim.** Self-attention connects any two words of a sentence in one step. A
# recurrent layer needs as many steps as there are words between them, and computes them one after
# the other. For sentences, which are short compared with the width of the vectors, self-attention
# also needs fewer operations.
#
# $n$ is the number of words, $d$ the width of the vectors, $k$ the width of a convolution, and $r$
# the size of a neighbourhood:
#
# | layer | complexity | sequential operations | maximum path length |
# |---|---|---|---|
# | self-attention | $O(n^2 \cdot d)$ | $O(1)$ | $O(1)$ |
# | recurrent | $O(n \cdot d^2)$ | $O(n)$ | $O(n)$ |
# | convolutional | $O(k \cdot n \cdot d^2)$ | $O(1)$ | $O(\log_k n)$ |
# | self-attention, restricted | $O(r \cdot n \cdot d)$ | $O(1)$ | $O(n / r)$ |
#
# The path length matters for learning: the shorter the path between two words, the easier it is to
# learn that one depends on the other. This chapter verifies the table. It counts the operations
# while they run, and the entries of the masks that the network uses.

# %%
from inspect import getsource

import torch
from matplotlib import pyplot as plt
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from transept import ModelConfig, Transformer
from transept.model.attention import reference_attention
from transept.model.packing import Band, Tokens, visible

# %% [markdown]
# ## Computational complexity
#
# PyTorch can count the multiplications and additions of any code. How does their number grow with
# twice the words, or with vectors twice as wide?


# %%
def self_attention(n, d):
    """Equation (1) for n words."""
    q, k, v = torch.randn(3, 1, 1, n, d)
    return reference_attention(q, k, v, torch.ones(1, n, n, dtype=torch.bool))


def flops(layer, n, d):
    """The number of floating-point operations."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(n, d)
    return counter.get_total_flops()


layers = {
    "self-attention": self_attention,
    "recurrent": lambda n, d: nn.RNN(d, d)(torch.randn(n, d)),
    "convolution, k = 3": lambda n, d: nn.Conv1d(d, d, 3, padding=1)(torch.randn(1, d, n)),
}
for name, layer in layers.items():
    once, longer, wider = flops(layer, 32, 64), flops(layer, 64, 64), flops(layer, 32, 128)
    print(f"{name:20} twice the words: {longer / once:.1f} times, twice the width:", end=" ")
    print(f"{wider / once:.1f} times")
    assert (longer / once, wider / once) == ((4, 2) if layer is self_attention else (2, 4))

# %% [markdown]
# ## Path length
#
# The keys that a query attends to are a band around it:

# %%
print(getsource(Band))


# %%
def sees(n, band):
    """Which word attends to which, in a sentence of n words."""
    layout = Tokens.padded(torch.ones(1, n, dtype=torch.long), pad_id=0).layout
    return visible(layout, layout, band)[0]


def longest_way(mask):
    """The number of layers until every word depends on every other."""
    reached, layers = mask, 1
    while not reached.all():
        reached, layers = (reached.float() @ mask.float()) > 0, layers + 1
    return layers


# %%
r = 9
lengths = [8, 16, 32, 64, 128]
dense = [sees(n, Band()) for n in lengths]
near = [sees(n, Band.restricted(r)) for n in lengths]

print("   n    pairs, dense    r = 9   path, dense    r = 9")
for n, all_of_them, neighbours in zip(lengths, dense, near, strict=True):
    ways = longest_way(all_of_them), longest_way(neighbours)
    print(f"{n:4} {all_of_them.sum():15,} {neighbours.sum():8,} {ways[0]:13} {ways[1]:8}")
    assert all_of_them.sum() == n * n
    assert neighbours.sum() <= r * n
    assert ways[0] == 1
    assert ways[1] == max(1, -(-(n - 1) // (r // 2)))

# %%
# Figure: With r = 9 there are fewer pairs to compute, but distant words need more layers.
_, (left, right) = plt.subplots(1, 2)
left.loglog(lengths, [m.sum().item() for m in dense], "o-", color="C0", label="n²")
left.loglog(lengths, [m.sum().item() for m in near], "o-", color="C1", label="r · n, r = 9")
left.set(xlabel="words", title="pairs to compute")
left.legend()
right.plot(lengths, [longest_way(m) for m in dense], "o-", color="C0")
right.plot(lengths, [longest_way(m) for m in near], "o-", color="C1")
right.set(xlabel="words", title="maximum path length, in layers")

# %% [markdown]
# Sentences have about 30 words, and the base model has $d = 512$. As $n$ is much smaller than $d$,
# $n^2 d$ is less than $n d^2$: self-attention over all pairs of words is affordable. For whole
# documents the opposite is true.
#
# The package computes restricted self-attention of long sequences in blocks, so that it takes
# $r \cdot n \cdot d$ operations. [The paper's tables, measured](../tables.md) has times and memory
# of all five kinds of layers for up to 8,192 positions. None of the paper's models restricts
# attention.
#
# ## The same in the network
#
# Restricted self-attention is a field of the config. With $r = 3$ and two layers, information can
# move by at most two positions. The gradient of word 5's state with respect to the embeddings shows
# it. A state is a vector, so its gradient needs a direction. A random one is used here. The plain
# sum of the state would not work: layer normalization makes it zero for every input, so its
# gradient is zero too.

# %%
torch.manual_seed(0)
config = ModelConfig(vocab_size=30, n_layers=2, d_model=32, d_ff=64, n_heads=2, encoder_window=3)
model = Transformer(config).eval()
source = Tokens.padded(torch.arange(1, 12)[None], pad_id=0)
x = model.source_embedding(source.ids).detach().requires_grad_()
states = model.encoder(x + model.source_positions(source.layout), source.layout)
(gradient,) = torch.autograd.grad(states[5], x, grad_outputs=torch.randn(32))
felt = gradient.abs().sum(-1)
print("gradient by word:", [round(value, 2) for value in felt.tolist()])
assert (felt[3:8] > 0.01 * felt.max()).all()
assert torch.cat([felt[:3], felt[8:]]).max() < 1e-6

# %%
# Figure: The state of word 5 depends on words 3 to 7, and on no others.
_, axis = plt.subplots(figsize=(7.2, 1.8))
axis.bar(range(11), felt.tolist(), color="C1")
axis.set(
    xlabel="word", ylabel="gradient", title="what the state of word 5 depends on, r = 3, N = 2"
)
axis.set_xticks(range(11))
