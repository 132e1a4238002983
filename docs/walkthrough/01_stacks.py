# %% [markdown]
# # 1. The stacks
#
# *Sections 3 and 3.1*
#
# A Transformer reads a sentence in one language and writes it in another. It has two halves. The
# **encoder** turns the source, a row of tokens, into a row of vectors, as many as there are
# tokens. The **decoder** writes the target from left to right: at each place it looks at what it
# has written so far and at the encoder's vectors, and says how likely each entry of the vocabulary
# is to come next. Nothing recurs: all places of a sentence are computed at once, and the only way
# in which one place learns of another is *attention*, the subject of the next chapter.
#
# This walk-through does not write the network a second time. It shows the package's own source,
# runs it, draws what comes out, and asserts what should hold; whoever changes the package so that
# a page is no longer true breaks a test. Each chapter is a plain Python script, and a notebook.

# %%
from inspect import getsource

import torch

from transept import ModelConfig, Transformer
from transept.model.layers import PostNorm
from transept.model.transformer import DecoderLayer, Encoder, EncoderLayer

# %% [markdown]
# ## A small network, and what it computes
#
# The paper's base model has 6 layers and vectors of 512 numbers. For reading, two layers of 64 will
# do; the code is the same. Tokens are numbers: 1 ends a sentence, 0 fills up the shorter rows of a
# batch, the rest are words or parts of words.

# %%
torch.manual_seed(0)
config = ModelConfig(vocab_size=100, n_layers=2, d_model=64, d_ff=256, n_heads=4)
model = Transformer(config).eval()

source_ids = torch.tensor([[17, 42, 8, 1], [23, 9, 1, 0]])
target_ids = torch.tensor([[5, 99, 31, 60, 1], [77, 12, 1, 0, 0]])
logits = model(source_ids, target_ids)

print("logits:", tuple(logits.shape), " two sentences, five places, a hundred words")
assert logits.shape == (2, 5, 100)

# %% [markdown]
# `logits[:, i]` are about `target_ids[:, i]`: a softmax makes probabilities of them. So that place
# *i* cannot simply read the answer, the decoder's input is the target **shifted right** by one,
# with a zero vector in front. You hand over the target as it should come out; the network does the
# shifting.
#
# ## What an encoder layer does
#
# Two sub-layers, one after the other: self-attention mixes between places, then a small network
# works on each place by itself.

# %%
print(getsource(EncoderLayer.forward))

# %% [markdown]
# Each of them sits in a **residual connection**: what a sub-layer computes is added to what it was
# given. Here is the paper's form, with the layer norm *after* the sum:

# %%
print(getsource(PostNorm.forward))

# %% [markdown]
# So the numbers that leave a layer are always normalised: each token's vector has mean 0 and
# variance 1 (the norm's own scale and shift begin as the identity).

# %%
states = model.encode(source_ids).states
print("encoder states:", tuple(states.shape), " eight places on one flat axis")
mean, deviation = states.mean(-1), states.std(-1, correction=0)
print(f"no mean is farther from 0 than {mean.abs().max():.0e},", end=" ")
print(f"no deviation farther from 1 than {(deviation - 1).abs().max():.0e}")
assert mean.abs().max() < 1e-5
assert torch.allclose(deviation, torch.ones(8), atol=1e-3)

# %% [markdown]
# Today many prefer to normalise a sub-layer's *input* instead, `x + Sublayer(LayerNorm(x))`: deep
# stacks then train more easily, but nothing normalises the end of the stack, so it needs one more
# norm there. That is `norm="pre"`. It is a choice, not the paper.
#
# The encoder is then no more than a loop:

# %%
print(getsource(Encoder.forward))

# %% [markdown]
# ## What a decoder layer does
#
# Three sub-layers. Its self-attention must not look ahead; between it and the feed-forward network
# stands attention to the encoder's output, through which all of the source comes in.

# %%
print(getsource(DecoderLayer.forward))

# %% [markdown]
# Does it really not look ahead? Change the last word of the first target, before its end symbol:
# only the logits after the word may change. Those up to it, its own among them, do not.

# %%
other = target_ids.clone()
other[0, 3] = 50
difference = (model(source_ids, other) - logits).abs().amax(dim=-1)[0]
print("largest change of a logit, place by place:", [round(d, 4) for d in difference.tolist()])
assert difference[:4].max() < 1e-5 < difference[4]

# %% [markdown]
# And padding? The second sentence gives the same logits without its neighbour:

# %%
alone = model(source_ids[1:, :3], target_ids[1:, :3])
print(f"alone and in a batch differ by {(alone[0] - logits[1, :3]).abs().max():.1e}")
assert torch.allclose(alone[0], logits[1, :3], atol=1e-5)

# %% [markdown]
# ## How large it is
#
# A layer's weights can be counted by hand. Attention has four matrices of d_model × d_model and no
# biases; the feed-forward network has two matrices and two biases; a norm has a scale and a shift.

# %%
with torch.device("meta"):  # the shapes, without the memory
    base = Transformer(ModelConfig.preset("base", vocab_size=37_000))

d, ff, vocabulary = 512, 2048, 37_000
attention, norm = 4 * d * d, 2 * d
feed_forward = (d * ff + ff) + (ff * d + d)
encoder_layer = attention + feed_forward + 2 * norm
decoder_layer = 2 * attention + feed_forward + 3 * norm
by_hand = vocabulary * d + 6 * (encoder_layer + decoder_layer)

print(f"base: {base.n_parameters():,} parameters; by hand {by_hand:,}")
assert base.n_parameters() == by_hand

# %% [markdown]
# The paper prints 65 million, from a vocabulary that it calls "about 37,000".
